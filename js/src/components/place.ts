/** Where a floating box goes: under its anchor, above it if there is no room; within the widget if that is wide enough,
 * never outside the window, also where its anchor has left it. */
import { useLayoutEffect } from "preact/hooks";

const GAP = 10;
const EDGE = 8;

interface Box {
  readonly left: number;
  readonly top: number;
  readonly bottom: number;
}

interface Sides {
  readonly left: number;
  readonly right: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

export function position(anchor: Box, box: Size, home: Sides, view: Size): { left: number; top: number } {
  const roomy = home.right - home.left >= box.width + 2 * EDGE;
  const right = Math.min(view.width, roomy ? home.right : view.width);
  const left = Math.max(EDGE, Math.min(anchor.left - GAP, right - box.width - EDGE));
  const below = anchor.bottom + GAP;
  const above = anchor.top - GAP - box.height;
  const lowest = view.height - EDGE - box.height;
  const top = below <= lowest || above < EDGE ? below : above;
  return { left, top: Math.max(EDGE, Math.min(top, lowest)) };
}

export function place(box: HTMLElement, anchor: Element | null): void {
  const home = anchor?.closest(".camit");
  if (!anchor || !home) return;
  const view = { width: window.innerWidth, height: window.innerHeight };
  const { left, top } = position(
    anchor.getBoundingClientRect(),
    box.getBoundingClientRect(),
    home.getBoundingClientRect(),
    view,
  );
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}

/** Put the box into the top layer and keep it beside its anchor, whatever scrolls, resizes, or comes and goes in the widget;
 * placed anew when `moved` changes. */
export function usePlaced(
  box: { current: HTMLElement | null },
  anchor: () => Element | null,
  moved: readonly unknown[] = [],
): void {
  useLayoutEffect(() => box.current?.showPopover?.(), []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const put = () => place(element, anchor());
    put();
    document.addEventListener("scroll", put, { capture: true, passive: true });
    window.addEventListener("resize", put);
    // A notice above the words moves them; the widget is taller by it.
    const sizes = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(put);
    const home = element.closest(".camit");
    if (home) sizes?.observe(home);
    return () => {
      sizes?.disconnect();
      document.removeEventListener("scroll", put, { capture: true });
      window.removeEventListener("resize", put);
    };
  }, [...moved]);
}

/** Where a floating box goes: under its anchor, above it if there is no room, never outside the window. */

const GAP = 10;
const EDGE = 8;

interface Box {
  readonly left: number;
  readonly top: number;
  readonly bottom: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

export function position(anchor: Box, box: Size, view: Size): { left: number; top: number } {
  const left = Math.max(EDGE, Math.min(anchor.left - GAP, view.width - box.width - EDGE));
  const below = anchor.bottom + GAP;
  const above = anchor.top - GAP - box.height;
  const fits = below + box.height <= view.height - EDGE;
  return { left, top: fits || above < EDGE ? below : above };
}

export function place(box: HTMLElement, anchor: Element | null): void {
  if (!anchor) return;
  const view = { width: window.innerWidth, height: window.innerHeight };
  const { left, top } = position(anchor.getBoundingClientRect(), box.getBoundingClientRect(), view);
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}

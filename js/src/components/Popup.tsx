/** Something that opens in front of the widget: it has the keyboard until it is closed, by Escape or by a click elsewhere. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { focusBeside, focusIsLost } from "./focus";
import { usePlaced } from "./place";

interface Props {
  role: "menu" | "dialog";
  label: string;
  class: string;
  onClose: () => void;
  children: ComponentChildren;
  /** What it belongs to, as a selector; in the middle of the window if it belongs to nothing. */
  anchor?: string;
}

const FOCUSABLE = "button, input, select, [tabindex='0']";

export function Popup({ role, label, class: name, onClose, children, anchor }: Props) {
  const box = useRef<HTMLDivElement>(null);
  usePlaced(box, () => (anchor ? (box.current?.closest(".camit")?.querySelector(anchor) ?? null) : null));
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const before = focusBeside(element);
    element.querySelector<HTMLElement>(FOCUSABLE)?.focus();
    const outside = (event: PointerEvent) => {
      const path = event.composedPath();
      // A button that opens such a thing closes it by itself.
      const opener = path.some((item) => item instanceof Element && item.hasAttribute("aria-haspopup"));
      if (!path.includes(element) && !opener) onClose();
    };
    document.addEventListener("pointerdown", outside, true);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      const free = focusIsLost(element) || element.contains(focusBeside(element));
      if (free && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: the role is menu or dialog, both of which have names
    // biome-ignore lint/a11y/noStaticElementInteractions: the same
    <div
      ref={box}
      popover="manual"
      role={role}
      aria-label={label}
      aria-modal={role === "dialog" || undefined}
      class={`camit-popup ${name}`}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape" || (event.key === "Tab" && role === "menu")) {
          event.stopPropagation();
          event.preventDefault();
          onClose();
        } else if (role === "menu") moveInMenu(event, box.current);
        else if (event.key === "Tab") goRound(event, box.current);
      }}
    >
      {children}
    </div>
  );
}

/** Behind the last one comes the first one again. */
function goRound(event: KeyboardEvent, box: HTMLElement | null): void {
  const stops = [...(box?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])];
  const [from, to] = event.shiftKey ? [stops[0], stops.at(-1)] : [stops.at(-1), stops[0]];
  if (event.target !== from) return;
  event.preventDefault();
  to?.focus();
}

function moveInMenu(event: KeyboardEvent, menu: HTMLElement | null): void {
  const items = [...(menu?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
  const now = items.indexOf(event.target as HTMLElement);
  const steps: Record<string, number> = {
    ArrowDown: now + 1,
    ArrowUp: now - 1,
    Home: 0,
    End: items.length - 1,
  };
  const next = steps[event.key];
  if (next === undefined) return;
  event.preventDefault();
  items.at(next % items.length)?.focus();
}

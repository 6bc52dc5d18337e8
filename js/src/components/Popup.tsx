/** Something that opens over the widget and closes on Escape, on a click elsewhere, and when the keyboard leaves it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  role: "menu" | "dialog";
  label: string;
  class: string;
  onClose: () => void;
  children: ComponentChildren;
}

const FOCUSABLE = "button, input, select, [tabindex='0']";

export function Popup({ role, label, class: name, onClose, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const before = document.activeElement;
    element.querySelector<HTMLElement>(FOCUSABLE)?.focus();
    const outside = (event: PointerEvent) => {
      const target = event.target as Node;
      // The button that opened it closes it by itself.
      if (!element.contains(target) && !(before instanceof Element && before.contains(target))) onClose();
    };
    document.addEventListener("pointerdown", outside, true);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      const left = element.contains(document.activeElement) || document.activeElement === document.body;
      if (left && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: the role is menu or dialog, both of which have names
    // biome-ignore lint/a11y/noStaticElementInteractions: the same
    <div
      ref={box}
      role={role}
      aria-label={label}
      class={`camit-popup ${name}`}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          onClose();
        }
        if (role === "menu") moveInMenu(event, box.current);
      }}
    >
      {children}
    </div>
  );
}

function moveInMenu(event: KeyboardEvent, menu: HTMLElement | null): void {
  const items = [...(menu?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
  const now = items.indexOf(document.activeElement as HTMLElement);
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

/** Line icons on a 16 px grid; always beside or inside something that has a name, so hidden from screen readers. */
const PATHS = {
  undo: "M3 6h6.5a3.5 3.5 0 0 1 0 7H6M3 6l3-3M3 6l3 3",
  redo: "M13 6H6.5a3.5 3.5 0 0 0 0 7H10M13 6l-3-3M13 6l-3 3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  help: "M5.8 6a2.2 2.2 0 1 1 3.4 1.9c-.8.5-1.2.9-1.2 1.8M8 12.4h.01",
  play: "M5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  back: "M10 3.5 5.5 8l4.5 4.5",
  next: "M6 3.5 10.5 8 6 12.5",
  close: "m4 4 8 8M12 4l-8 8",
  pin: "M6 2.5h4l-.5 4 2 2.5H4.5l2-2.5zM8 9v4.5",
  remove: "M3.5 4.5h9M6.5 4.5v-2h3v2M5 4.5l.5 9h5l.5-9",
  lock: "M4.5 7.5h7v5.5h-7zM6 7.5V5.3a2 2 0 0 1 4 0v2.2",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  check: "m3.5 8.5 3 3 6-7",
  recall: "M4 8a4.3 4.3 0 1 1 1.3 3M4 4.8V8h3",
  alert: "M8 4.5v4.2M8 11.4h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="camit-icon" viewBox="0 0 16 16" aria-hidden="true" data-icon={name}>
      <path d={PATHS[name]} />
    </svg>
  );
}

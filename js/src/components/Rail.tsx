/** The sentences of the document, with how far each one is. */
import { useEffect, useRef } from "preact/hooks";
import type { Row, Status } from "../protocol";
import { duration, plural } from "../words";
import { useStore } from "./context";

const SAID: Record<Status, string> = {
  waiting: "not translated yet",
  draft: "draft",
  revised: "revised",
  confirmed: "confirmed",
  failed: "failed",
};

export function Rail() {
  const store = useStore();
  const { rows, source_language } = store.state.overview.value;
  const current = store.sentence.value.row;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const on = list.current?.querySelector<HTMLElement>("[aria-current]");
    const box = list.current;
    if (!on || !box) return;
    // Not scrollIntoView: that would scroll the notebook too.
    box.scrollTop = Math.max(
      Math.min(box.scrollTop, on.offsetTop - 8),
      on.offsetTop + on.offsetHeight + 8 - box.clientHeight,
    );
    box.scrollLeft = Math.max(
      Math.min(box.scrollLeft, on.offsetLeft - 8),
      on.offsetLeft + on.offsetWidth + 8 - box.clientWidth,
    );
  }, [current]);
  if (rows.length < 2) return null;
  return (
    <nav class="camit-rail" aria-label="Sentences">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the rows in it */}
      <div class="camit-rows" ref={list} onKeyDown={walk}>
        {rows.map((row, index) => (
          <RailRow
            key={index}
            row={row}
            index={index}
            current={index === current}
            language={source_language}
          />
        ))}
      </div>
    </nav>
  );
}

/** Along the rows, whichever way they run; Enter goes to the sentence. */
function walk(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".camit-row")];
  const now = rows.indexOf(event.target as HTMLElement);
  const steps: Record<string, number> = {
    ArrowDown: now + 1,
    ArrowRight: now + 1,
    ArrowUp: now - 1,
    ArrowLeft: now - 1,
    Home: 0,
    End: rows.length - 1,
  };
  const next = steps[event.key];
  if (next === undefined) return;
  event.preventDefault();
  rows[Math.max(0, Math.min(next, rows.length - 1))]?.focus();
}

interface RowProps {
  row: Row;
  index: number;
  current: boolean;
  language: string;
}

function RailRow({ row, index, current, language }: RowProps) {
  const store = useStore();
  const effort =
    row.revisions > 0
      ? [plural(row.revisions, "revision"), ...(row.seconds >= 1 ? [duration(row.seconds)] : [])]
      : [];
  const about = [SAID[row.status], ...effort].join(", ");
  return (
    <button
      type="button"
      class="camit-row"
      data-status={row.status}
      aria-current={current ? "true" : undefined}
      // One tab stop for all of them; the arrows walk along them, Page Up and Page Down go from sentence to sentence.
      tabIndex={current ? 0 : -1}
      title={about}
      onClick={() => store.changes.go(index)}
    >
      <StatusMark status={row.status} />
      <span class="camit-number">{index + 1}</span>
      <span class="camit-row-text" lang={language} dir="auto">
        {row.source}
      </span>
      <span class="camit-hidden">, {about}</span>
      {row.revisions > 0 && (
        <span class="camit-row-effort" aria-hidden="true">
          {row.revisions}
        </span>
      )}
    </button>
  );
}

/** Empty, half, full: the shape says it without the colour. */
function StatusMark({ status }: { status: Status }) {
  return (
    <svg class="camit-status" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="4.5" class="camit-status-ring" />
      {status === "revised" && <path d="M6 1.5a4.5 4.5 0 0 0 0 9z" class="camit-status-fill" />}
      {status === "confirmed" && <circle cx="6" cy="6" r="4.5" class="camit-status-fill" />}
      {status === "failed" && <path d="M6 3.4v3M6 8.4h.01" class="camit-status-ring" />}
    </svg>
  );
}

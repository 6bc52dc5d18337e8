/** What the memory holds, where it came from, and how it was used while this sentence was written. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Entry } from "../protocol";
import type { Store } from "../store";
import { percent, plural, provenance } from "../words";
import { ByHand } from "./ByHand";
import { useStore } from "./context";
import { focusIsLost } from "./focus";
import { type Cell, HeatMap, type HeatRow } from "./HeatMap";
import { IconButton } from "./IconButton";

const SHOWN = 12;
const OFF = "The memory is switched off: nothing is written to it, and nothing is copied from it.";

export function MemoryView() {
  const store = useStore();
  const view = useRef<HTMLDivElement>(null);
  const all = useSignal(false);
  const open = useSignal<number | null>(null);
  const { words, row, version } = store.sentence.value;
  const looks = store.state.looks.value;
  const { entries, enabled } = store.state.memory.value;
  const cells = new Map<number, Cell[]>(entries.map((entry) => [entry.id, []]));
  const current = looks.row === row && looks.version === version ? looks.cells : [];
  for (const look of current) {
    const theta = words[look.word]?.theta ?? 0;
    // r alone is dark wherever an entry is the only one: what counts is r where the memory is trusted at all.
    const copied = (look.weight / 100) * theta;
    const title = `θ·r ${percent(copied)} (r ${percent(look.weight / 100)}, θ ${percent(theta)})`;
    cells.get(look.entry)?.push({ column: look.word, shade: copied, title });
  }
  const strength = (entry: Entry) => Math.max(0, ...(cells.get(entry.id) ?? []).map((cell) => cell.shade));
  const sorted = [...entries].sort(
    (a, b) => Number(b.pinned) - Number(a.pinned) || strength(b) - strength(a) || b.id - a.id,
  );
  const shown = all.value ? sorted : sorted.slice(0, SHOWN);
  const forget = useForgetting(view, shown);
  const columns = words.map((word) => word.text);
  const said = (found: readonly Cell[]) =>
    found.map((cell) => `${columns[cell.column]}: ${cell.title}`).join("; ");
  const thetas = words.map((word, column) => ({
    column,
    shade: word.theta,
    title: `θ ${percent(word.theta)}`,
  }));
  const theta: HeatRow = {
    key: "theta",
    label: "θ copy weight",
    spoken: said(thetas),
    cells: thetas,
    bars: true,
  };
  const rows = shown.map((entry): HeatRow => {
    const found = cells.get(entry.id) ?? [];
    return {
      key: entry.id,
      label: (
        <EntryLabel
          entry={entry}
          open={open.value === entry.id}
          onOpen={() => {
            open.value = open.value === entry.id ? null : entry.id;
          }}
          onForget={() => forget(entry)}
        />
      ),
      spoken: found.length > 0 ? `looked at for ${said(found)}` : "not looked at in this sentence",
      cells: found,
      below: open.value === entry.id && <Provenance entry={entry} />,
    };
  });
  if (entries.length === 0)
    return (
      <div class="camit-view camit-memory" ref={view}>
        <p class="camit-lead">
          {enabled
            ? "Nothing remembered yet. Words you correct are kept here when you confirm a sentence, and come back where they fit."
            : OFF}
        </p>
        <ByHand />
      </div>
    );
  return (
    <div class="camit-view camit-memory" ref={view}>
      {enabled || <p class="camit-lead">{OFF}</p>}
      <HeatMap
        label="Memory: copy weight per word, and what each entry was looked at for"
        columns={columns}
        language={store.state.overview.value.target_language}
        rows={[theta, ...rows]}
        labels={336}
        lit={store.pointed.value?.side === "target" ? store.pointed.value.index : null}
        onPoint={(column) => {
          store.hovered.value = column === null ? null : { side: "target", index: column };
        }}
      />
      {sorted.length > SHOWN && (
        <button
          type="button"
          class="camit-link"
          onClick={() => {
            all.value = !all.value;
          }}
        >
          {all.value ? "Show fewer" : `Show all ${sorted.length}`}
        </button>
      )}
      <p class="camit-footnote">
        A row is a correction of yours. The stronger a cell, the more weight it had where that word was
        chosen: θ·r, trust in the memory times this entry’s share. It was copied where a word carries its
        mark. Open a row to see where it came from.
      </p>
      <ByHand />
    </div>
  );
}

/** Forget an entry; the keyboard goes to the next one, or to the form once there is none. */
function useForgetting(view: { current: HTMLElement | null }, shown: readonly Entry[]) {
  const store = useStore();
  const forgotten = useRef<number | null>(null);
  useLayoutEffect(() => {
    const box = view.current;
    if (forgotten.current === null || !box || !focusIsLost(box)) return;
    const left = [...box.querySelectorAll<HTMLElement>("[aria-label^='Forget ']")];
    const next = left[forgotten.current] ?? left.at(-1) ?? box.querySelector("input");
    next?.focus({ preventScroll: true });
    forgotten.current = null;
  }, [shown.map((entry) => entry.id).join()]);
  return (entry: Entry) => {
    forgotten.current = shown.indexOf(entry);
    void store.remembering.forget(entry);
  };
}

interface LabelProps {
  entry: Entry;
  open: boolean;
  onOpen: () => void;
  onForget: () => void;
}

function EntryLabel({ entry, open, onOpen, onForget }: LabelProps) {
  const store = useStore();
  const about = [
    provenance(entry),
    ...(copiedHere(store, entry) ? ["copied here"] : []),
    ...(entry.copies > 0 ? [`copied ${entry.copies}×`] : []),
    ...(entry.pinned ? ["pinned"] : []),
  ];
  return (
    <>
      <button
        type="button"
        class="camit-entry"
        aria-expanded={open}
        title={`${entry.source} → ${entry.target}`}
        onClick={onOpen}
      >
        <b>{entry.text}</b>{" "}
        <span class="camit-dim">
          <span class="camit-entry-dot">· </span>
          {about.join(" · ")}
        </span>
      </button>
      {store.readOnly.value || (
        <>
          <IconButton
            icon="pin"
            label={`${entry.pinned ? "Unpin" : "Pin"} ${entry.text}`}
            pressed={entry.pinned}
            onClick={() => store.remembering.pin(entry, !entry.pinned)}
          />
          <IconButton icon="remove" label={`Forget ${entry.text}`} onClick={onForget} />
        </>
      )}
    </>
  );
}

/** Copies are counted when a sentence is confirmed; until then they can be seen in it. */
function copiedHere(store: Store, entry: Entry): boolean {
  const { words, status } = store.sentence.value;
  return status !== "confirmed" && words.some((word) => word.memory === entry.id);
}

function Provenance({ entry }: { entry: Entry }) {
  const store = useStore();
  const { source_language, target_language } = store.state.overview.value;
  return (
    <div class="camit-provenance">
      <p lang={source_language} dir="auto">
        {entry.source}
      </p>
      <p lang={target_language} dir="auto">
        {entry.target}
      </p>
      <p class="camit-dim">
        {copiedHere(store, entry) ? "Copied into this sentence. " : ""}
        {entry.copies > 0
          ? `Copied ${plural(entry.copies, "time")} in confirmed sentences.`
          : "Not copied in a confirmed sentence yet."}
        {entry.row !== null && (
          <button type="button" class="camit-link" onClick={() => store.changes.go(entry.row ?? 0)}>
            Go to sentence {entry.row + 1}
          </button>
        )}
      </p>
    </div>
  );
}

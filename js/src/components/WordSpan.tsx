/** One word of the translation, the gap before it, and the word that is on its way into the sentence. */
import type { Word } from "../protocol";
import { isLong, isMark, originOf, percent, provenance, recalledRow, sideOfGap, spoken } from "../words";
import { useStore } from "./context";
import { Icon } from "./Icon";

interface Props {
  word: Word;
  index: number;
  previous: Word | undefined;
  next: Word | undefined;
}

export function WordSpan({ word, index, previous, next }: Props) {
  const store = useStore();
  const { start, stop } = store.span.value;
  const inSpan = index >= start && index < stop;
  const pointed = store.pointed.value;
  const lit = pointed?.side === "source" ? (word.attention[pointed.index] ?? 0) : 0;
  const entry = word.memory === null ? undefined : store.entries.value.get(word.memory);
  const recalled = recalledRow(word);
  // One number for all neighbours that come from the same sentence.
  const announced = recalled !== null && (!previous || recalledRow(previous) !== recalled);
  const editor = store.editing.editor.value;
  const edited = editor?.mode === "replace" && index >= editor.start && index < editor.stop;
  // What stands close to its neighbour is drawn without room on that side.
  const close = [!word.space && index > 0 && "before", next && !next.space && "after"]
    .filter(Boolean)
    .join(" ");
  const pending = store.changes.pending.value.findLast((edit) => index >= edit.start && index < edit.stop);
  // The first word of a span stands for all of it while the change is on its way; it stays the same element, so that the
  // keyboard does not fall out of the widget.
  const shown = index === pending?.start && pending.text ? pending.text : word.text;
  return (
    <span
      role="option"
      id={`${store.id}-word-${index}`}
      class="camit-word"
      data-origin={shown === word.text ? word.origin : "yours"}
      data-index={index}
      data-pending={
        pending && (pending.text === "" ? "leaving" : index === pending.start ? "coming" : "gone")
      }
      data-edited={edited || undefined}
      data-close={close || undefined}
      data-long={isLong(shown) || undefined}
      data-recalled={recalled !== null || undefined}
      aria-selected={stop - start > 1 && inSpan}
      aria-label={spoken(word, entry)}
      tabIndex={index === store.focus.value ? 0 : -1}
      style={{ "--theta": word.theta, "--lit": lit / 100 }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        store.dragging.value = event.shiftKey ? (store.anchor.value ?? store.focus.value) : index;
        if (event.shiftKey) event.preventDefault();
      }}
      // The editor that is open stays until the click is done: what was typed in it would move the words under the mouse.
      onMouseDown={(event) => {
        if (editor) event.preventDefault();
      }}
      // Not pointerenter: that also comes when words move under a pointer at rest.
      onPointerMove={() => {
        const hovered = store.hovered.value;
        if (hovered?.side !== "target" || hovered.index !== index)
          store.hovered.value = { side: "target", index };
        const from = store.dragging.value;
        if (from !== null && store.focus.value !== index) store.select(from, index);
      }}
      onPointerLeave={() => {
        store.hovered.value = null;
      }}
      onPointerUp={(event) => {
        const from = store.dragging.value;
        if (event.button !== 0 || from === null) return;
        store.select(from, index);
        store.editing.open(store.span.value);
      }}
      onFocus={() => {
        store.focused.value = { side: "target", index };
        if (store.anchor.value === null) store.focus.value = index;
      }}
    >
      {shown}
      {word.locked && word.origin !== "yours" && <Icon name="lock" />}
      {entry && (
        <sup
          class="camit-badge"
          title={`From memory: “${entry.text}”, ${provenance(entry)}. Copy weight θ ${percent(word.theta)}; ${originOf(word)}.`}
        >
          <Icon name="recall" />
          {entry.row === null ? "" : entry.row + 1}
        </sup>
      )}
      {announced && (
        <sup
          class="camit-badge"
          data-recalled
          title={`Recalled: confirmed sentences have it at places like this, sentence ${recalled + 1} above all. They give ${percent(word.recalled)} of this word; ${originOf(word)}.`}
        >
          ≈{recalled + 1}
        </sup>
      )}
    </span>
  );
}

/** Between two words: a click inserts there. With the keyboard, Insert does it, so the gap need not be a stop. */
export function Gap({
  at,
  before,
  after,
}: {
  at: number;
  before: Word | undefined;
  after: Word | undefined;
}) {
  const store = useStore();
  const side = sideOfGap(before, after);
  const editor = store.editing.editor.value;
  const open = editor?.mode === "insert" && editor.start === at;
  return (
    <span
      class="camit-gap"
      aria-hidden="true"
      data-gap={at}
      data-side={side}
      data-mark={(before && isMark(before.text)) || undefined}
      data-open={open || undefined}
      title="Insert here"
      onMouseDown={(event) => event.preventDefault()}
      onClick={() => store.editing.openGap(at)}
    >
      {side === "space" ? " " : ""}
    </span>
  );
}

/** What the person just inserted, shown at once, while the rest of the sentence is being written around it. */
export function InsertedWord({ text }: { text: string }) {
  return (
    <span
      class="camit-word"
      data-origin="yours"
      data-pending="coming"
      data-long={isLong(text) || undefined}
      aria-hidden="true"
    >
      {text}{" "}
    </span>
  );
}

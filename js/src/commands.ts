/** Commands of the keyboard, carried out on the store. Returns whether there was anything to do. */
import type { Command } from "./keyboard";
import type { Store } from "./store";

export function perform(command: Command, store: Store, target: HTMLElement): boolean {
  const { span, focus, editing } = store;
  const words = store.words.length;
  switch (command.do) {
    case "move":
      store.focusOn(focus.value + forward(command.by, target), command.extend);
      return true;
    case "read":
      readOn(command, target);
      return true;
    case "edge":
      store.focusOn(command.to === "first" ? 0 : words - 1, command.extend);
      return true;
    case "line": {
      const next = wordOnNextLine(target, command.by);
      if (next !== null) store.focusOn(next, command.extend);
      return true;
    }
    case "edit":
      editing.open(span.value);
      return true;
    case "type":
      editing.open(span.value, command.text);
      return true;
    case "compose":
      editing.open(span.value);
      return false; // the key itself goes on into the input
    case "insert":
      editing.openGap(command.side === "before" ? span.value.start : span.value.stop);
      return true;
    case "delete":
      void store.changes.delete(span.value);
      return true;
    case "rewrite":
      void store.changes.rewrite(span.value);
      return true;
    case "keep":
      void store.changes.toggleKeep(span.value);
      return true;
    case "apply":
      editing.apply();
      return true;
    case "finish":
      editing.apply();
      void store.changes.confirm();
      return true;
    case "nothing":
      return true;
    case "suggest":
      editing.step(command.by);
      return true;
    case "confirm":
      void store.changes.confirm();
      return true;
    case "undo":
      // Where the memory was changed, that is what is undone.
      if (!(target.closest(".camit-memory") && store.remembering.undo())) void store.changes.undo();
      return true;
    case "redo":
      void store.changes.redo();
      return true;
    case "copy":
      void store.copySelection();
      return true;
    case "all":
      store.focusOn(0);
      store.focusOn(words - 1, true);
      return true;
    case "sentence":
      store.changes.go(store.changes.destination + command.by);
      return true;
    case "help":
      store.panel.value = store.panel.value === "help" ? null : "help";
      return true;
    case "close":
      return store.escape();
  }
}

/** The keys point left and right, the words of some languages run from right to left. */
function forward(by: -1 | 1, word: HTMLElement): number {
  return getComputedStyle(word).direction === "rtl" ? -by : by;
}

function readOn(command: Extract<Command, { do: "read" }>, word: HTMLElement): void {
  const words = [...(word.parentElement?.querySelectorAll<HTMLElement>("[role=option]") ?? [])];
  const next = "to" in command ? command.to : words.indexOf(word) + forward(command.by, word);
  const found = next === "first" ? words[0] : next === "last" ? words.at(-1) : words[next];
  found?.focus();
}

/**
 * The word that begins nearest above or below, as the lines happen to be broken. Beginnings, as a caret has it:
 * by its middle, a short word with a long one below it would not be found again on the way back.
 */
function wordOnNextLine(word: HTMLElement, by: -1 | 1): number | null {
  const line = word.closest(".camit-target");
  const here = word.getBoundingClientRect();
  const beginning = (box: DOMRect) => (forward(1, word) > 0 ? box.left : box.right);
  let best: { index: number; rows: number; aside: number } | null = null;
  for (const other of line?.querySelectorAll<HTMLElement>("[role=option]") ?? []) {
    const box = other.getBoundingClientRect();
    const rows = Math.round(((box.top - here.top) * by) / Math.max(here.height, 1));
    if (rows < 1) continue;
    const aside = Math.abs(beginning(box) - beginning(here));
    if (!best || rows < best.rows || (rows === best.rows && aside < best.aside))
      best = { index: Number(other.dataset.index), rows, aside };
  }
  return best?.index ?? null;
}

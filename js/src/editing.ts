/** The word editor: what is being changed, what was typed, and what the model would suggest. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Span } from "./places";
import type { Suggestion } from "./protocol";
import type { Store } from "./store";
import { join } from "./words";

export interface Editor {
  /** Another one for each time the editor is opened. */
  readonly id: number;
  readonly mode: "replace" | "insert";
  readonly start: number;
  readonly stop: number;
  /** The sentence as a whole: there is no other word for it, and without it nothing would be left. */
  readonly whole: boolean;
  /** What stands there now. */
  readonly original: string;
  /** What the input shows: typed, or taken over from the chosen suggestion. Enter takes exactly this. */
  readonly text: string;
  readonly typed: string;
  readonly suggestions: readonly Suggestion[];
  /** Index of the suggestion shown in the input, or -1 for what was typed. */
  readonly chosen: number;
  readonly loading: boolean;
}

/** A key pressed this soon after an editor went by itself, in milliseconds, was meant for the editor. */
const REACTION = 500;

/** What Enter will do, for the hint beside it. */
export type Outcome = "replace" | "insert" | "delete" | "close";

export class Editing {
  readonly editor: ReadonlySignal<Editor | null>;
  readonly #editor: Signal<Editor | null> = signal(null);
  readonly #store: Store;
  #asked = 0;
  #opened = 0;
  #taken = -REACTION;

  constructor(store: Store) {
    this.#store = store;
    this.editor = this.#editor;
  }

  /** Edit the words of a span; `typed` replaces them at once, as typing over a selection does. */
  open(span: Span, typed?: string): void {
    if (!this.#store.mayChange() || span.start >= span.stop) return;
    this.settle();
    const original = join(this.#store.words.slice(span.start, span.stop));
    this.#start({ mode: "replace", ...span, original, text: typed ?? original, typed: typed ?? original });
    void this.#suggest(typed ?? "");
  }

  openGap(at: number, typed = ""): void {
    if (!this.#store.mayChange()) return;
    this.settle();
    this.#start({ mode: "insert", start: at, stop: at, original: "", text: typed, typed });
    void this.#suggest(typed);
  }

  close(): void {
    this.#asked += 1;
    this.#editor.value = null;
  }

  /** The sentence reads differently: the editor goes where its words are now, and keeps what was typed in any case. */
  follow(find: (place: Span) => Span): void {
    const editor = this.#editor.value;
    if (!editor) return;
    const untouched = editor.text === editor.original;
    const place = find(editor);
    const mode = place.start < place.stop ? "replace" : "insert";
    if (untouched && mode !== editor.mode) {
      this.leave(); // the word is gone
      this.#taken = performance.now();
      return;
    }
    const original = join(this.#store.words.slice(place.start, place.stop));
    const shown = untouched ? { text: original, typed: original } : {};
    this.#editor.value = { ...editor, ...place, whole: this.#isWhole(place), mode, original, ...shown };
    void this.#suggest(untouched ? "" : editor.typed);
  }

  /** An answer took an editor away so recently that nobody can know it yet. */
  get justTaken(): boolean {
    return performance.now() - this.#taken < REACTION;
  }

  /** Close and give the keyboard back to the words. */
  leave(): void {
    const editor = this.#editor.value;
    if (!editor) return;
    this.close();
    this.#store.focusOn(editor.start);
  }

  type(text: string): void {
    const editor = this.#editor.value;
    if (!editor) return;
    const fitting = editor.suggestions.filter((item) => startsWith(item.text, text));
    this.#editor.value = { ...editor, text, typed: text, chosen: -1, suggestions: fitting };
    void this.#suggest(text);
  }

  /** Step through the suggestions; the input shows the one in hand, so nothing is accepted unseen. */
  step(by: -1 | 1): void {
    const editor = this.#editor.value;
    if (!editor || editor.suggestions.length === 0) return;
    const places = editor.suggestions.length + 1;
    const chosen = ((editor.chosen + 1 + by + places) % places) - 1;
    this.#editor.value = { ...editor, chosen, text: editor.suggestions[chosen]?.text ?? editor.typed };
  }

  /** Take a suggestion by pointing at it. */
  take(suggestion: Suggestion): void {
    const editor = this.#editor.value;
    if (!editor) return;
    this.#editor.value = { ...editor, text: suggestion.text };
    this.apply();
  }

  apply(): void {
    const editor = this.#editor.value;
    if (!editor) return;
    this.leave();
    this.#carryOut(editor);
  }

  /** The person turned elsewhere: words they typed are taken, as in a spreadsheet; a suggestion they only looked at is not. */
  settle(): void {
    const editor = this.#editor.value;
    if (!editor) return;
    this.close();
    const typed = { ...editor, text: editor.typed };
    if (outcomeOf(typed) !== "delete") this.#carryOut(typed);
  }

  #isWhole({ start, stop }: Span): boolean {
    return start === 0 && stop > 0 && stop === this.#store.words.length;
  }

  /** Words that were typed and not yet taken, if there are any. */
  get unsaved(): string | null {
    const editor = this.#editor.value;
    const typed = editor?.typed.trim();
    return typed && typed !== editor?.original ? typed : null;
  }

  #carryOut(editor: Editor): void {
    const text = editor.text.trim();
    const outcome = outcomeOf(editor);
    const { changes } = this.#store;
    if (outcome === "replace") void changes.replace(editor, text);
    else if (outcome === "insert") void changes.insert(editor.start, text);
    else if (outcome === "delete") void changes.delete(editor);
  }

  #start(given: Omit<Editor, "id" | "whole" | "suggestions" | "chosen" | "loading">): void {
    this.#store.playback.close();
    this.#opened += 1;
    const editor = { ...given, id: this.#opened, whole: this.#isWhole(given) };
    this.#editor.value = { ...editor, suggestions: [], chosen: -1, loading: true };
  }

  async #suggest(typed: string): Promise<void> {
    const editor = this.#editor.value;
    if (!editor) return;
    this.#asked += 1;
    const asked = this.#asked;
    if (editor.whole && editor.stop > 1) {
      this.#editor.value = { ...editor, suggestions: [], chosen: -1, loading: false };
      return;
    }
    const { row, version } = this.#store.sentence.value;
    const wanted = typed.trim();
    const where = { row, version, start: editor.start, stop: editor.stop };
    const completing = wanted !== "" || editor.mode === "insert";
    const result = await this.#store.lookUp(
      completing ? { type: "complete", ...where, typed: wanted } : { type: "alternatives", ...where },
    );
    const now = this.#editor.value;
    if (asked !== this.#asked || !now) return;
    // A list that arrives late must not move under a person's finger.
    const keep = result?.kind !== "suggestions" || now.chosen >= 0;
    this.#editor.value = { ...now, suggestions: keep ? now.suggestions : result.items, loading: false };
  }
}

export function outcomeOf(editor: Editor): Outcome {
  const text = editor.text.trim();
  if (text === editor.original) return "close";
  if (text === "") return editor.mode === "replace" && !editor.whole ? "delete" : "close";
  return editor.mode;
}

function startsWith(word: string, typed: string): boolean {
  return word.toLowerCase().startsWith(typed.trim().toLowerCase());
}

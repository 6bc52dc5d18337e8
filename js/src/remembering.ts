/** The memory, changed by hand: what was done is said, and can be taken back. */
import { type Signal, signal } from "@preact/signals";
import type { Ask } from "./host";
import type { Entry } from "./protocol";
import type { Store } from "./store";
import { shortened } from "./words";

type Named = Pick<Entry, "id" | "text">;

/** What was done last, and whether there is anything that can be taken back. */
export interface Done {
  readonly text: string;
  readonly undo: boolean;
}

/** One thing to ask for, and what to say when it is done. */
interface Step {
  readonly ask: Extract<Ask, { type: "pin" | "forget" | "recall" }>;
  readonly said: string;
}

export class Remembering {
  readonly done: Signal<Done | null> = signal(null);
  /** What takes back what was done, the last of it last. */
  #back: readonly Step[] = [];
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async pin(entry: Named, pinned: boolean): Promise<void> {
    await this.#change(pin(entry, pinned), pin(entry, !pinned));
  }

  async forget(entry: Named): Promise<void> {
    const said = `“${shortened(entry.text)}” is back as it was.`;
    await this.#change(forget(entry), { ask: { type: "recall", entry: entry.id }, said });
  }

  /** True if it is a new entry. */
  async remember(source: string, text: string): Promise<boolean> {
    const result = await this.#store.ask({ type: "remember", source, text });
    if (result?.kind !== "remembered") return false;
    if (result.new) this.#back = [...this.#back, forget({ id: result.entry, text })];
    this.#say(
      `${result.new ? "Remembered " : ""}“${shortened(text)}”${result.new ? "" : ALREADY}.`,
      result.new,
    );
    return result.new;
  }

  /** Take the last thing back, then the one before it; false if there is nothing to take back. */
  undo(): boolean {
    const step = this.#store.readOnly.value ? undefined : this.#back.at(-1);
    if (!step) return false;
    this.#back = this.#back.slice(0, -1);
    void this.#change(step);
    return true;
  }

  /** The person turned to something else: nothing is said any more, and nothing taken back. */
  clear(): void {
    this.#back = [];
    this.done.value = null;
  }

  async #change({ ask, said }: Step, back?: Step): Promise<void> {
    if (!(await this.#store.ask(ask))) return;
    if (back) this.#back = [...this.#back, back];
    this.#say(said);
  }

  #say(text: string, undo = true): void {
    this.done.value = { text, undo: undo && this.#back.length > 0 };
    this.#store.messages.say(text);
  }
}

const ALREADY = " is remembered for that already";

function pin(entry: Named, pinned: boolean): Step {
  const said = `${pinned ? "Pinned" : "Unpinned"} “${shortened(entry.text)}”.`;
  return { ask: { type: "pin", entry: entry.id, pinned }, said };
}

function forget(entry: Named): Step {
  return { ask: { type: "forget", entry: entry.id }, said: `Forgot “${shortened(entry.text)}”.` };
}

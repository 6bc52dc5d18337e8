/** The memory, changed by hand: what was done is said, and can be taken back. */
import { type Signal, signal } from "@preact/signals";
import type { Entry } from "./protocol";
import type { Store } from "./store";

type Named = Pick<Entry, "id" | "text">;

/** What was done last; `undo` does the opposite, and can itself be undone. */
export interface Done {
  readonly text: string;
  readonly undo: (() => Promise<void>) | null;
}

export class Remembering {
  readonly done: Signal<Done | null> = signal(null);
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async pin(entry: Named, pinned: boolean): Promise<void> {
    if (await this.#store.ask({ type: "pin", entry: entry.id, pinned }))
      this.#say(`${pinned ? "Pinned" : "Unpinned"} “${entry.text}”.`, () => this.pin(entry, !pinned));
  }

  async forget(entry: Named): Promise<void> {
    if (await this.#store.ask({ type: "forget", entry: entry.id }))
      this.#say(`Forgot “${entry.text}”.`, () => this.#recall(entry));
  }

  async #recall(entry: Named): Promise<void> {
    if (await this.#store.ask({ type: "recall", entry: entry.id }))
      this.#say(`“${entry.text}” is back as it was.`, () => this.forget(entry));
  }

  /** True if it is a new entry. */
  async remember(source: string, text: string): Promise<boolean> {
    const result = await this.#store.ask({ type: "remember", source, text });
    if (result?.kind !== "remembered") return false;
    if (result.new) this.#say(`Remembered “${text}”.`, () => this.forget({ id: result.entry, text }));
    else this.#say(`“${text}” is remembered for that already.`, null);
    return result.new;
  }

  /** Take the last thing back; false if there is nothing to take back. */
  undo(): boolean {
    const undo = this.#store.readOnly.value ? null : this.done.value?.undo;
    void undo?.();
    return !!undo;
  }

  #say(text: string, undo: Done["undo"]): void {
    this.done.value = { text, undo };
    this.#store.messages.say(text);
  }
}

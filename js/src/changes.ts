/**
 * What a person does to the sentences, carried out one after the other: each change waits for the one before it, and its
 * place follows the words, so that nothing done in a hurry is lost or lands where it was not meant.
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Ask, Refusal, Superseded } from "./host";
import { type Edit, follow, landed, type Span } from "./places";
import type { Effort, Problem, Sentence } from "./protocol";
import type { Store } from "./store";
import { changed, join, plural } from "./words";

interface Where extends Span {
  readonly row: number;
  readonly version: number;
}

interface Turn {
  /** Null if there is nothing to do any more; a problem if it cannot be done. */
  readonly make: (where: Where) => Ask | Problem | null;
  readonly row: number;
  /** The wording that `place` is about. */
  readonly version: number;
  /** The words it is about, wherever they are by now; empty once they are gone. */
  readonly place: Span;
  /** The wording it was last asked about: in another one, it has arrived. */
  readonly sent?: number;
  /** What will stand there; null if it changes no words. */
  readonly text: string | null;
  /** It leaves the sentence: not done if a change before it failed, for the person has to see that first. */
  readonly leaving: "confirm" | "go" | null;
  readonly stop: AbortController;
  readonly settle: (done: boolean) => void;
}

export class Changes {
  /** What will stand where, in the order it was asked for. */
  readonly pending: ReadonlySignal<readonly Edit[]>;
  readonly confirming: ReadonlySignal<boolean>;
  readonly #turns: Signal<readonly Turn[]> = signal([]);
  readonly #store: Store;
  #working = false;
  /** The edit whose words the keyboard goes to, until the person turns elsewhere. */
  #watched: AbortController | null = null;

  constructor(store: Store) {
    this.#store = store;
    this.pending = computed(() => {
      const { row, version } = store.sentence.value;
      return this.#turns.value.flatMap(({ text, place, stop, sent = version, ...turn }) => {
        const here = turn.row === row && sent === version && !stop.signal.aborted;
        return here && text !== null ? [{ ...place, text }] : [];
      });
    });
    // Of the sentence on the desk: the next one may be there before the answer about the one before it is.
    this.confirming = computed(() => {
      const { row } = store.sentence.value;
      return this.#turns.value.some((turn) => turn.leaving === "confirm" && turn.row === row);
    });
  }

  // --- what can be done ------------------------------------------------------------------------------------------------------

  replace(span: Span, text: string): Promise<void> {
    return this.#edit(span, text, (where, effort) => {
      const { row, version, start, stop } = where;
      // Words that are gone by now need not be replaced, but what was typed goes where they stood.
      if (start === stop) return { type: "insert", row, version, at: start, text, effort };
      return { type: "replace", ...where, text, effort };
    });
  }

  insert(at: number, text: string): Promise<void> {
    return this.replace({ start: at, stop: at }, text);
  }

  delete(span: Span): Promise<void> {
    const leaving = ({ start, stop, text }: Edit) => text === "" && start <= span.start && span.stop <= stop;
    if (this.pending.value.some(leaving)) return Promise.resolve();
    const done = this.#edit(span, "", (where, effort) =>
      where.start === where.stop ? null : { type: "delete", ...where, effort },
    );
    const { words } = this.#store;
    if (this.#store.editable.value)
      this.#store.focusOn(span.stop < words.length ? span.stop : span.start - 1);
    return done;
  }

  /** Have words written anew by the model. */
  rewrite(span: Span): Promise<void> {
    const make = (where: Where, effort: Effort): Ask | Problem =>
      where.start === where.stop ? GONE : { type: "blank", ...where, effort };
    const done = this.#edit(span, REWRITING, make, `Rewrote ${plural(span.stop - span.start, "word")}: `);
    // The others are not shown meanwhile, and would lose the keyboard.
    if (this.#store.editable.value) this.#store.focusOn(span.start);
    return done;
  }

  /** Lock the words of a span, or release them when all are locked already. */
  async toggleKeep(span: Span): Promise<void> {
    if (!this.#store.mayChange()) return;
    const words = this.#store.words.slice(span.start, span.stop);
    const type = words.every((word) => word.locked) ? "release" : "keep";
    const make = (where: Where): Ask | Problem => (where.start === where.stop ? GONE : { type, ...where });
    if (await this.#take({ make, place: span }))
      this.#store.messages.say(`${join(words)}: ${type === "keep" ? "locked" : "released"}`);
  }

  /** Back one step: what is still on its way first. */
  async undo(): Promise<void> {
    if (this.withdraw() || !this.#store.mayChange() || !this.#store.sentence.value.can_undo) return;
    await this.#step("undo", "Undone");
  }

  async redo(): Promise<void> {
    if (this.#store.mayChange() && this.#store.sentence.value.can_redo)
      await this.#step("redo", "Done again");
  }

  /** Take back the newest edit that is still on its way; false if there is none. */
  withdraw(): boolean {
    const turn = this.#turns.value.findLast(({ text, stop }) => text !== null && !stop.signal.aborted);
    if (!turn) return false;
    turn.stop.abort();
    if (turn === this.#turns.value[0]) this.#turns.value = [...this.#turns.value];
    else this.#drop(turn);
    this.#stay(turn.row);
    this.#store.messages.say("Stopped");
    return true;
  }

  async confirm(): Promise<void> {
    if (!this.#store.editable.value) return;
    const { row } = this.#store.sentence.value;
    this.#begin();
    const make = ({ version }: Where): Ask => ({ type: "confirm", row, version });
    if (await this.#take({ make, leaving: "confirm" }))
      this.#store.messages.note.value = {
        text: `Sentence ${row + 1} confirmed.${this.#finished(row) ? " All sentences are confirmed." : ""}`,
        // Taking back is about the newest confirmation: not offered for this one while the next is on its way.
        confirmed: this.confirming.value ? null : row,
      };
  }

  /** With this one, all sentences of the document are. */
  #finished(confirmed: number): boolean {
    const { rows } = this.#store.state.overview.value;
    const done = rows.every(({ status }, row) => row === confirmed || status === "confirmed");
    return rows.length > 1 && done;
  }

  /** Put another sentence on the desk; asked for several, only the last is gone to. */
  go(row: number): void {
    const { rows } = this.#store.state.overview.value;
    if (row < 0 || row >= rows.length || row === this.destination) return;
    this.#begin();
    for (const turn of this.#turns.value.slice(1)) if (turn.leaving === "go") this.#drop(turn);
    this.#destination = row;
    void this.#take({ make: () => ({ type: "go", row }), leaving: "go" });
  }

  #destination: number | null = null;

  /** Where we are going, or are. */
  get destination(): number {
    const going = this.#turns.value.some((turn) => turn.leaving === "go");
    return (going ? this.#destination : null) ?? this.#store.sentence.value.row;
  }

  async #edit(
    span: Span,
    text: string,
    make: (where: Where, effort: Effort) => Ask | Problem | null,
    said = "",
  ): Promise<void> {
    const store = this.#store;
    if (!store.mayChange()) {
      // What was begun while it could be changed is not lost because it cannot any more.
      if (text && text !== REWRITING) this.#fail(store.readOnly.value ? NOBODY : CONFIRMED, text);
      return;
    }
    this.#begin();
    const effort = store.effort.spent();
    const stop = new AbortController();
    this.#watched = stop;
    const done = await this.#take({ make: (where) => make(where, effort), place: span, text, stop });
    if (done && this.pending.value.length === 0)
      store.messages.say(
        `${said}${join(store.words)} ${plural(changed(store.words), "word")} changed for you.`,
      );
  }

  async #step(type: "undo" | "redo", said: string): Promise<void> {
    this.#begin();
    const { sentence } = this.#store;
    const make = ({ row }: Where): Ask | null => (sentence.value[`can_${type}`] ? { type, row } : null);
    const before = sentence.value;
    if ((await this.#take({ make })) && sentence.value !== before)
      this.#store.messages.say(`${said}: ${join(this.#store.words)}`);
  }

  /** A person turned to something new. */
  #begin(): void {
    this.#store.messages.note.value = null;
    this.#store.editing.close();
    this.#store.playback.close();
  }

  // --- in turn -----------------------------------------------------------------------------------------------------------------

  #take(given: Pick<Turn, "make"> & Partial<Turn>): Promise<boolean> {
    const { row, version } = this.#store.sentence.value;
    const before = this.#store.messages.problem.value;
    return new Promise((resolve) => {
      const turn: Turn = {
        row,
        version,
        text: null,
        leaving: null,
        stop: new AbortController(),
        ...given,
        // No more than a span: what is sent is refused if it says more.
        place: given.place ? { start: given.place.start, stop: given.place.stop } : { start: 0, stop: 0 },
        settle: (done) => {
          if (done) this.#store.messages.done(before, turn.text ?? undefined);
          resolve(done);
        },
      };
      this.#turns.value = [...this.#turns.value, turn];
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    for (let turn = this.#turns.value[0]; turn; turn = this.#turns.value[0]) {
      const done = await this.#carryOut(turn);
      this.#turns.value = this.#turns.value.slice(1);
      turn.settle(done);
      if (!done && turn.text !== null) this.#stay(turn.row, 0);
    }
    this.#working = false;
  }

  /** A sentence is not left after all: it is not confirmed, nor another gone to from it, if that was not asked for yet. */
  #stay(row: number, from = 1): void {
    for (const turn of this.#turns.value.slice(from)) if (turn.leaving && turn.row === row) this.#drop(turn);
  }

  /** Ask for the first turn, and ask again if the sentence was changed by somebody else in between. */
  async #carryOut({ make, text, leaving, stop, row }: Turn): Promise<boolean> {
    for (;;) {
      const [first, ...others] = this.#turns.value as [Turn, ...Turn[]];
      const { place, version } = first;
      const request = make({ row, version, ...place });
      if (!request) return true;
      if ("title" in request) return this.#fail(request, text);
      this.#turns.value = [{ ...first, sent: version }, ...others];
      try {
        await this.#store.host.ask(request, stop.signal);
        // Stopped, but too late.
        if (stop.signal.aborted) await this.#store.host.ask({ type: "undo", row });
        return !stop.signal.aborted;
      } catch (reason) {
        if (reason instanceof Superseded && stop.signal.aborted) return false;
        if (!(reason instanceof Refusal)) return this.#fail({ ...BROKEN, detail: String(reason) }, text);
        const again = reason.outdated && !leaving && this.#turns.value[0]?.version !== version;
        if (!again) return this.#fail(reason.problem, text);
      }
    }
  }

  #fail(problem: Problem, text: string | null): false {
    this.#store.messages.fail(text && text !== REWRITING ? { ...problem, typed: text } : problem);
    return false;
  }

  #drop(turn: Turn): void {
    this.#turns.value = this.#turns.value.filter((other) => other !== turn);
    turn.settle(false);
  }

  // --- following the words -----------------------------------------------------------------------------------------------------

  /** How places of the old wording of a sentence are found in the new one. */
  follower(before: Sentence, after: Sentence): (place: Span) => Span {
    const [first] = this.#turns.value;
    const edit = first && first.text !== null ? { ...first.place, text: first.text } : undefined;
    return (place) => follow(place, before.words, after.words, edit);
  }

  /** The sentence on the desk reads differently; gives the place of what the person waits for, if they do. */
  follow(before: Sentence, after: Sentence): Span | null {
    const find = this.follower(before, after);
    const [first] = this.#turns.value;
    const put = first?.text && landed(after.words, { ...first.place, text: first.text });
    this.#turns.value = this.#turns.value.map((turn, n, turns) => {
      if (turn.row !== after.row) return turn;
      // What is confirmed is what the person saw, or what comes of their own changes.
      const theirs = turns.slice(0, n).some((earlier) => earlier.row === turn.row && !earlier.leaving);
      if (turn.leaving === "confirm" && !theirs) return turn;
      // The first one may be what changed the sentence; if not, it is asked for again where its words are now.
      const place = turn === first ? follow(turn.place, before.words, after.words) : find(turn.place);
      return { ...turn, place, version: after.version };
    });
    return first && first.stop === this.#watched ? put || null : null;
  }

  /** The person turned to another place: the keyboard stays there. */
  look(): void {
    this.#watched = null;
  }
}

/** Stands where the model writes something of its own. */
const REWRITING = "\u2026";
const NOBODY: Problem = {
  title: "The kernel is gone",
  detail: "What you typed was not taken.",
  advice: "Run the cell again, and type it there.",
};
const CONFIRMED: Problem = {
  title: "The sentence was confirmed meanwhile",
  detail: "What you typed was not taken.",
  advice: "Take the confirmation back to change it.",
};
const BROKEN = { title: "Something broke in the widget", advice: "Try again, or run the cell again." };
const GONE: Problem = {
  title: "Those words are not there any more",
  detail: "The sentence was written again meanwhile, without them.",
  advice: "Look at it again.",
};

/** One view's state and everything a person can do in it. The document itself belongs to the host; this is what is local. */
import {
  batch,
  computed,
  effect,
  type ReadonlySignal,
  type Signal,
  signal,
  untracked,
} from "@preact/signals";
import { Editing } from "./editing";
import { Effort } from "./effort";
import { type Ask, type Connection, type Host, Refusal, type State, Superseded } from "./host";
import { Playback } from "./playback";
import type { AnyResult, Entry, ExportFormat, Problem, Word } from "./protocol";
import { copyText, saveFile } from "./share";
import { changed, join, locate, plural, score } from "./words";

export type Tab = "memory" | "attention" | "learning" | "steps";
export type Panel = "menu" | "settings" | "help";

/** A word somebody looks at, on either side. */
export interface Pointed {
  readonly side: "source" | "target";
  readonly index: number;
}

/** A change on its way: what will stand from `start` to `stop`. */
export interface Pending {
  readonly start: number;
  readonly stop: number;
  readonly text: string;
}

/** Half open, like a slice. */
export interface Span {
  readonly start: number;
  readonly stop: number;
}

/** Something that just happened, worth a line; `confirmed` is the row it confirmed, if it did. */
export interface Note {
  readonly text: string;
  readonly confirmed: number | null;
}

export class Store {
  /** Prefix of element ids: several views of one widget can stand on one page. */
  readonly id = `camit-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`;
  readonly state: State;
  readonly connection: ReadonlySignal<Connection>;
  /** Nobody would carry a change out. */
  readonly readOnly: ReadonlySignal<boolean>;
  /** The sentence on the desk can be changed: it is there, and not confirmed. */
  readonly editable: ReadonlySignal<boolean>;

  readonly focus = signal(0);
  readonly anchor: Signal<number | null> = signal(null);
  readonly span: ReadonlySignal<Span>;
  /** Grows when the keyboard should go to the word in `focus`. */
  readonly grab = signal(0);
  readonly hovered: Signal<Pointed | null> = signal(null);
  readonly focused: Signal<Pointed | null> = signal(null);
  /** The keyboard is in the words, or in their place while there are none. */
  readonly inWords = signal(false);
  readonly pointed: ReadonlySignal<Pointed | null>;
  /** The word a selecting mouse started from. */
  readonly dragging: Signal<number | null> = signal(null);

  readonly pending: Signal<Pending | null> = signal(null);
  readonly busy: ReadonlySignal<boolean>;
  readonly problem: Signal<Problem | null> = signal(null);
  readonly note: Signal<Note | null> = signal(null);
  /** The note, with what was learned from it as soon as that is known. */
  readonly noteText: ReadonlySignal<string>;
  readonly announcement = signal("");
  readonly tab: Signal<Tab> = signal("memory");
  readonly panel: Signal<Panel | null> = signal(null);

  readonly entries: ReadonlySignal<ReadonlyMap<number, Entry>>;
  readonly editing: Editing;
  readonly effort = new Effort();
  readonly playback: Playback;
  readonly #host: Host;
  readonly #stop: (() => void)[] = [];

  constructor(host: Host) {
    this.#host = host;
    this.state = host.state;
    this.connection = host.connection;
    this.readOnly = computed(() => host.connection.value === "lost" || host.connection.value === "offline");
    this.editable = computed(() => {
      const { status } = host.state.sentence.value;
      return !this.readOnly.value && (status === "draft" || status === "revised");
    });
    this.span = computed(() => {
      const [focus, anchor] = [this.focus.value, this.anchor.value ?? this.focus.value];
      return { start: Math.min(focus, anchor), stop: Math.max(focus, anchor) + 1 };
    });
    this.pointed = computed(() => this.hovered.value ?? this.#edited() ?? this.focused.value);
    this.busy = computed(() => this.pending.value !== null || this.sentence.value.status === "waiting");
    this.entries = computed(() => new Map(this.state.memory.value.entries.map((entry) => [entry.id, entry])));
    this.noteText = computed(() => this.#noteText());
    this.editing = new Editing(this);
    this.playback = new Playback(this.state.sentence);
    this.#stop.push(this.#followSentence(), this.#followTrouble(), this.#followNote(), this.playback.dispose);
  }

  /** The word in the editor stays the one that is looked at, wherever the keyboard is. */
  #edited(): Pointed | null {
    const editor = this.editing.editor.value;
    return editor?.mode === "replace" ? { side: "target", index: editor.start } : null;
  }

  get sentence() {
    return this.state.sentence;
  }

  get words(): readonly Word[] {
    return this.sentence.value.words;
  }

  dispose(): void {
    for (const stop of this.#stop) stop();
    this.#host.dispose();
  }

  // --- asking ------------------------------------------------------------------------------------------------------------------

  /** Ask the host; a refusal is shown in place, a superseded request is nobody's business. Null when there is no result. */
  async ask(request: Ask): Promise<AnyResult | null> {
    try {
      return await this.#host.ask(request);
    } catch (reason) {
      if (reason instanceof Superseded) return null;
      if (!(reason instanceof Refusal)) throw reason;
      this.fail(reason.problem);
      return null;
    }
  }

  fail(problem: Problem): void {
    this.problem.value = problem;
    this.note.value = null;
  }

  /** Ask for suggestions: a refusal here is no more than an empty list. */
  async lookUp(request: Ask): Promise<AnyResult | null> {
    try {
      return await this.#host.ask(request);
    } catch {
      return null;
    }
  }

  // --- changing the sentence -----------------------------------------------------------------------------------------------------

  replace({ start, stop }: Span, text: string): Promise<void> {
    return this.#change(
      { type: "replace", ...this.#where(), start, stop, text, effort: this.effort.spent() },
      { start, stop, text },
    );
  }

  insert(at: number, text: string): Promise<void> {
    return this.#change(
      { type: "insert", ...this.#where(), at, text, effort: this.effort.spent() },
      { start: at, stop: at, text },
    );
  }

  delete({ start, stop }: Span): Promise<void> {
    return this.#change(
      { type: "delete", ...this.#where(), start, stop, effort: this.effort.spent() },
      { start, stop, text: "" },
    );
  }

  blank({ start, stop }: Span): Promise<void> {
    return this.#change(
      { type: "blank", ...this.#where(), start, stop, effort: this.effort.spent() },
      { start, stop, text: "\u2026" },
    );
  }

  /** Lock the words of a span, or release them when all are locked already. */
  async toggleKeep({ start, stop }: Span): Promise<void> {
    if (!this.editable.value) return;
    const words = this.words.slice(start, stop);
    const type = words.every((word) => word.locked) ? "release" : "keep";
    if (await this.ask({ type, ...this.#where(), start, stop }))
      this.say(`${join(words)}: ${type === "keep" ? "locked" : "released"}`);
  }

  async undo(): Promise<void> {
    if (this.pending.value) return this.cancel();
    if (this.editable.value && this.sentence.value.can_undo) await this.#step("undo", "Undone");
  }

  async redo(): Promise<void> {
    if (this.editable.value && this.sentence.value.can_redo) await this.#step("redo", "Done again");
  }

  async cancel(): Promise<void> {
    if (!this.pending.value) return;
    this.pending.value = null;
    await this.ask({ type: "cancel", row: this.sentence.value.row });
    this.say("Stopped");
  }

  async confirm(): Promise<void> {
    const { row, version } = this.sentence.value;
    if (!this.editable.value) return;
    this.#begin();
    if (await this.ask({ type: "confirm", row, version }))
      this.note.value = { text: `Sentence ${row + 1} confirmed.`, confirmed: row };
  }

  async unconfirm(): Promise<void> {
    this.note.value = null;
    if (await this.ask({ type: "unconfirm" })) this.#tell("Confirmation taken back, with all it taught.");
  }

  async #change(request: Ask, pending: Pending): Promise<void> {
    if (!this.editable.value) return;
    this.#begin();
    this.pending.value = pending;
    const result = await this.ask(request);
    if (this.pending.value !== pending) return; // a newer change is on its way
    this.pending.value = null;
    if (!result) return;
    const words = this.words;
    const found = pending.text ? locate(words, pending.text, pending.start) : null;
    this.focusOn(found ?? Math.min(pending.start, words.length - 1));
    this.say(`${join(words)} ${plural(changed(words), "word")} changed for you.`);
  }

  async #step(type: "undo" | "redo", said: string): Promise<void> {
    this.#begin();
    if (await this.ask({ type, row: this.sentence.value.row })) this.say(`${said}: ${join(this.words)}`);
  }

  /** A person turned to something new: what was said before is over. */
  #begin(): void {
    batch(() => {
      this.problem.value = null;
      this.note.value = null;
      this.editing.close();
      this.playback.close();
    });
  }

  #where() {
    const { row, version } = this.sentence.value;
    return { row, version };
  }

  // --- moving ----------------------------------------------------------------------------------------------------------------------

  focusOn(index: number, extend = false): void {
    batch(() => {
      if (extend) this.anchor.value ??= this.focus.value;
      else this.anchor.value = null;
      this.focus.value = Math.max(0, Math.min(index, this.words.length - 1));
      this.grab.value += 1;
    });
  }

  /** Select without taking the keyboard, as a dragging mouse does. */
  select(anchor: number, focus: number): void {
    batch(() => {
      this.anchor.value = anchor === focus ? null : anchor;
      this.focus.value = focus;
    });
  }

  go(row: number): void {
    const rows = this.state.overview.value.rows.length;
    if (row < 0 || row >= rows || row === this.sentence.value.row) return;
    this.#begin();
    void this.ask({ type: "go", row });
  }

  /** Back out of whatever is open, innermost first; false if nothing was. */
  escape(): boolean {
    if (this.editing.editor.value) this.editing.leave();
    else if (this.panel.value) this.panel.value = null;
    else if (this.pending.value) void this.cancel();
    else if (this.playback.showing.value) {
      this.playback.close();
      this.grab.value += 1;
    } else if (this.anchor.value !== null) this.anchor.value = null;
    else return false;
    return true;
  }

  retry(): void {
    this.problem.value = null;
    void this.ask({ type: "go", row: this.sentence.value.row });
  }

  /** When another sentence comes onto the desk, or this one gets another wording, what pointed into the old one is void. */
  #followSentence(): () => void {
    let row = this.sentence.value.row;
    let version = this.sentence.value.version;
    return effect(() => {
      const next = this.sentence.value;
      if (next.row === row && next.version === version) return;
      untracked(() =>
        batch(() => {
          this.editing.close();
          this.anchor.value = null;
          this.hovered.value = null;
          if (this.inWords.value) this.grab.value += 1;
          if (next.row !== row) {
            this.focus.value = 0;
            this.problem.value = null;
            this.pending.value = null;
            this.playback.close();
          }
          this.focus.value = Math.max(0, Math.min(this.focus.value, next.words.length - 1));
        }),
      );
      ({ row, version } = next);
    });
  }

  // --- memory, learning, settings --------------------------------------------------------------------------------------------------

  async configure(settings: Omit<Extract<Ask, { type: "configure" }>, "type">): Promise<void> {
    await this.ask({ type: "configure", ...settings });
  }

  async pin(entry: Entry): Promise<void> {
    if (await this.ask({ type: "pin", entry: entry.id, pinned: !entry.pinned }))
      this.say(`${entry.text}: ${entry.pinned ? "unpinned" : "pinned"}`);
  }

  async forget(entry: Entry): Promise<void> {
    if (await this.ask({ type: "forget", entry: entry.id })) this.say(`${entry.text}: forgotten`);
  }

  async remember(source: string, text: string): Promise<boolean> {
    const done = await this.ask({ type: "remember", source, text });
    if (done) this.say(`${text}: remembered`);
    return done !== null;
  }

  // --- out ---------------------------------------------------------------------------------------------------------------------------

  async copy(text: string): Promise<void> {
    this.panel.value = null;
    try {
      await copyText(text);
      this.#tell("Copied.");
    } catch {
      this.fail({
        title: "The browser did not copy",
        detail: "It keeps the clipboard from pages that are not served securely.",
        advice: "Export the text instead.",
      });
    }
  }

  copySentence(): Promise<void> {
    return this.copy(join(this.words));
  }

  /** The selected phrase, or the whole sentence when only one word is in focus. */
  copySelection(): Promise<void> {
    const { start, stop } = this.span.value;
    return this.copy(join(stop - start > 1 ? this.words.slice(start, stop) : this.words));
  }

  copyDocument(): Promise<void> {
    return this.copy(this.state.overview.value.rows.map((row) => row.text).join("\n"));
  }

  async export(format: ExportFormat): Promise<void> {
    this.panel.value = null;
    const result = await this.ask({ type: "export", format });
    if (result?.kind !== "exported") return;
    saveFile(result.filename, result.mime, result.text);
    this.#tell(`Exported as ${result.filename}.`);
  }

  // --- saying ------------------------------------------------------------------------------------------------------------------------

  /** To those who listen instead of looking. */
  say(text: string): void {
    this.announcement.value = text;
  }

  #tell(text: string): void {
    this.note.value = { text, confirmed: null };
  }

  #noteText(): string {
    const note = this.note.value;
    if (!note) return "";
    const { lessons, studying, enabled } = this.state.learning.value;
    const lesson = lessons.findLast((item) => item.row === note.confirmed);
    if (note.confirmed === null || !enabled) return note.text;
    if (studying === note.confirmed || !lesson) return `${note.text} Learning from it\u2026`;
    return lesson.accepted
      ? `${note.text} Learned: ${score(lesson.before)} → ${score(lesson.after)}.`
      : `${note.text} Not learned: ${lesson.reason}.`;
  }

  #followNote(): () => void {
    return effect(() => {
      if (this.noteText.value) this.announcement.value = this.noteText.value;
    });
  }

  #followTrouble(): () => void {
    return effect(() => {
      const problem = this.#host.trouble.value;
      if (problem) untracked(() => this.fail(problem));
    });
  }
}

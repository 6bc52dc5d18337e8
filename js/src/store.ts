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
import { Changes } from "./changes";
import { Editing } from "./editing";
import { Effort } from "./effort";
import { type Ask, type Connection, type Host, Refusal, type State, Superseded } from "./host";
import { Messages } from "./messages";
import type { Span } from "./places";
import { Playback } from "./playback";
import type { AnyResult, Entry, ExportFormat, Sentence, Word } from "./protocol";
import { Remembering } from "./remembering";
import { copyText, saveFile } from "./share";
import { join } from "./words";

export type Tab = "memory" | "attention" | "learning" | "steps";
export type Panel = "menu" | "settings" | "help";

/** A word somebody looks at, on either side. */
export interface Pointed {
  readonly side: "source" | "target";
  readonly index: number;
}

/** Another view went on, or a program, while somebody typed here. */
const MOVED_ON = {
  title: "Another sentence was put here meanwhile",
  detail: "What you typed was not taken.",
  advice: "Go back to yours and type it again.",
};

export class Store {
  /** Prefix of element ids: several views of one widget can stand on one page. */
  readonly id = `camit-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`;
  readonly state: State;
  readonly connection: ReadonlySignal<Connection>;
  /** Nobody would carry a change out. */
  readonly readOnly: ReadonlySignal<boolean>;
  /** The sentence on the desk can be changed: it is there, not confirmed, and not about to be. */
  readonly editable: ReadonlySignal<boolean>;

  readonly focus = signal(0);
  readonly anchor: Signal<number | null> = signal(null);
  readonly span: ReadonlySignal<Span>;
  /** Grows when the keyboard should go to the word in `focus`. */
  readonly grab = signal(0);
  /** The word of the source that Tab comes to. */
  readonly reading = signal(0);
  readonly hovered: Signal<Pointed | null> = signal(null);
  readonly focused: Signal<Pointed | null> = signal(null);
  /** The keyboard is in the words, or in their place while there are none. */
  readonly inWords = signal(false);
  readonly pointed: ReadonlySignal<Pointed | null>;
  /** The word a selecting mouse started from. */
  readonly dragging: Signal<number | null> = signal(null);

  readonly busy: ReadonlySignal<boolean>;
  readonly tab: Signal<Tab> = signal("memory");
  readonly panel: Signal<Panel | null> = signal(null);

  readonly entries: ReadonlySignal<ReadonlyMap<number, Entry>>;
  readonly messages: Messages;
  readonly changes: Changes;
  readonly remembering: Remembering;
  readonly editing: Editing;
  readonly effort = new Effort();
  readonly playback: Playback;
  readonly host: Host;
  readonly #stop: (() => void)[] = [];

  constructor(host: Host) {
    this.host = host;
    this.state = host.state;
    this.connection = host.connection;
    this.readOnly = computed(() => !["live", "silent"].includes(host.connection.value));
    this.messages = new Messages(host.state.learning, host.trouble);
    this.changes = new Changes(this);
    this.editable = computed(() => {
      const { status } = host.state.sentence.value;
      const open = status === "draft" || status === "revised";
      return open && !this.readOnly.value && !this.changes.confirming.value;
    });
    this.span = computed(() => {
      const [focus, anchor] = [this.focus.value, this.anchor.value ?? this.focus.value];
      return { start: Math.min(focus, anchor), stop: Math.max(focus, anchor) + 1 };
    });
    this.pointed = computed(() => this.hovered.value ?? this.#edited() ?? this.focused.value);
    this.busy = computed(
      () => this.changes.pending.value.length > 0 || this.sentence.value.status === "waiting",
    );
    this.entries = computed(() => new Map(this.state.memory.value.entries.map((entry) => [entry.id, entry])));
    this.remembering = new Remembering(this);
    this.editing = new Editing(this);
    this.playback = new Playback(this.state.sentence);
    this.#stop.push(this.#followSentence(), () => this.messages.dispose(), this.playback.dispose);
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
    this.host.dispose();
  }

  // --- asking ------------------------------------------------------------------------------------------------------------------

  /** Ask the host for something that need not wait for its turn; a refusal is shown in place. Null when there is no result. */
  async ask(request: Ask): Promise<AnyResult | null> {
    const before = this.messages.problem.value;
    try {
      const result = await this.host.ask(request);
      this.messages.done(before);
      return result;
    } catch (reason) {
      if (reason instanceof Superseded) return null;
      if (!(reason instanceof Refusal)) throw reason;
      this.messages.fail(reason.problem);
      return null;
    }
  }

  /** Ask for suggestions: a refusal here is no more than an empty list. */
  async lookUp(request: Ask): Promise<AnyResult | null> {
    try {
      return await this.host.ask(request);
    } catch {
      return null;
    }
  }

  // --- moving ----------------------------------------------------------------------------------------------------------------------

  focusOn(index: number, extend = false): void {
    this.changes.look();
    batch(() => {
      if (extend) this.anchor.value ??= this.focus.value;
      else this.anchor.value = null;
      this.focus.value = Math.max(0, Math.min(index, this.words.length - 1));
      this.grab.value += 1;
    });
  }

  /** Select without taking the keyboard, as a dragging mouse does. */
  select(anchor: number, focus: number): void {
    this.changes.look();
    batch(() => {
      this.anchor.value = anchor === focus ? null : anchor;
      this.focus.value = focus;
    });
  }

  /** Can the sentence be changed? If it is confirmed, who tries is told how. */
  mayChange(): boolean {
    const { status, row, can_unconfirm } = this.sentence.value;
    if (status === "confirmed" && !this.readOnly.value) {
      const said = can_unconfirm
        ? "take that back to change it."
        : "the Learning tab takes confirmations back, the last one first.";
      this.hovered.value = null;
      this.messages.note.value = {
        text: `Sentence ${row + 1} is confirmed: ${said}`,
        confirmed: can_unconfirm ? row : null,
      };
    }
    return this.editable.value;
  }

  /** Back out of whatever is open, innermost first; false if nothing was. */
  escape(): boolean {
    if (this.editing.editor.value) this.editing.leave();
    else if (this.panel.value) this.panel.value = null;
    else if (this.editing.justTaken) return true;
    else if (this.changes.withdraw()) return true;
    else if (this.playback.showing.value) {
      this.playback.close();
      this.grab.value += 1;
    } else if (this.messages.problem.value) this.messages.problem.value = null;
    else if (this.anchor.value !== null) this.anchor.value = null;
    else return false;
    return true;
  }

  retry(): void {
    void this.ask({ type: "go", row: this.sentence.value.row });
  }

  /** What pointed into the sentence follows it into another wording; into another sentence, nothing does. */
  #followSentence(): () => void {
    let before = this.sentence.value;
    return effect(() => {
      const after = this.sentence.value;
      const [old, stays] = [before, after.row === before.row];
      // Without words there is nothing to follow: while it is translated anew, everything waits where it was.
      if (stays && (after.version === old.version || after.words.length === 0)) return;
      before = after;
      const turn = () => (stays && old.words.length > 0 ? this.#follow(old, after) : this.#leave(stays));
      untracked(() => batch(turn));
    });
  }

  #follow(before: Sentence, after: Sentence): void {
    const find = this.changes.follower(before, after);
    this.editing.follow(find);
    const waited = this.changes.follow(before, after);
    const last = Math.max(0, after.words.length - 1);
    const index = (at: number) => Math.min(find({ start: at, stop: at + 1 }).start, last);
    this.anchor.value = waited || this.anchor.value === null ? null : index(this.anchor.value);
    this.focus.value = waited?.start ?? index(this.focus.value);
    this.hovered.value = null;
    if (this.inWords.value) this.grab.value += 1;
  }

  /** Another sentence, or, if it was put here before it was translated, its first words. */
  #leave(arriving: boolean): void {
    const typed = this.editing.unsaved;
    this.editing.close();
    this.playback.close();
    this.anchor.value = null;
    this.hovered.value = null;
    this.focus.value = 0;
    this.reading.value = 0;
    if (!arriving) this.remembering.clear();
    if (typed !== null) this.messages.problem.value = { ...MOVED_ON, typed };
    else if (!arriving) this.messages.problem.value = null;
    if (this.inWords.value) this.grab.value += 1;
  }

  // --- learning, settings ------------------------------------------------------------------------------------------------------------

  async unconfirm(): Promise<void> {
    this.messages.note.value = null;
    this.remembering.clear();
    if (await this.ask({ type: "unconfirm" }))
      this.messages.tell("Confirmation taken back, with all it taught.");
  }

  async configure(settings: Omit<Extract<Ask, { type: "configure" }>, "type">): Promise<void> {
    await this.ask({ type: "configure", ...settings });
  }

  // --- out ---------------------------------------------------------------------------------------------------------------------------

  async copy(text: string): Promise<void> {
    this.panel.value = null;
    try {
      await copyText(text);
      this.messages.tell("Copied.");
    } catch {
      this.messages.fail({
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

  /** All translations; those that are not made yet are made first. */
  async copyDocument(): Promise<void> {
    const { rows } = this.state.overview.value;
    if (this.readOnly.value || rows.every((row) => row.text))
      return this.copy(rows.map((row) => row.text).join("\n"));
    this.panel.value = null;
    const result = await this.ask({ type: "export", format: "text" });
    if (result?.kind === "exported") await this.copy(result.text.trimEnd());
  }

  async export(format: ExportFormat): Promise<void> {
    this.panel.value = null;
    const result = await this.ask({ type: "export", format });
    if (result?.kind !== "exported") return;
    saveFile(result.filename, result.mime, result.text);
    this.messages.tell(`Exported as ${result.filename}.`);
  }
}

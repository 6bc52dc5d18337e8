/** What the widget says: the last problem, the last thing that happened, and what those hear who do not look. */
import { computed, effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals";
import type { Learning, Problem } from "./protocol";
import { score } from "./words";

/** A problem, and what the person had typed when it came: that is never lost. */
export interface Trouble extends Problem {
  readonly typed?: string;
}

/** Something that just happened, worth a line; `confirmed` is the row it confirmed, if it did. */
export interface Note {
  readonly text: string;
  readonly confirmed: number | null;
}

export class Messages {
  readonly problem: Signal<Trouble | null> = signal(null);
  readonly note: Signal<Note | null> = signal(null);
  /** The note, with what was learned from it as soon as that is known. */
  readonly noteText: ReadonlySignal<string>;
  readonly announcement = signal("");
  readonly #stop: (() => void)[];

  constructor(learning: ReadonlySignal<Learning>, trouble: ReadonlySignal<Problem | null>) {
    this.noteText = computed(() => (this.note.value ? withLesson(this.note.value, learning.value) : ""));
    this.#stop = [
      effect(() => {
        if (this.noteText.value) this.announcement.value = this.noteText.value;
      }),
      effect(() => {
        const problem = trouble.value;
        if (problem) untracked(() => this.fail(problem));
      }),
    ];
  }

  fail(problem: Trouble): void {
    this.problem.value = problem;
    this.note.value = null;
  }

  /** A thing was done: a problem that stood there before it was begun is over, unless it holds something else that was typed. */
  done(before: Trouble | null, typed?: string): void {
    if (this.problem.value === before && (!before?.typed || before.typed === typed))
      this.problem.value = null;
  }

  tell(text: string): void {
    this.note.value = { text, confirmed: null };
  }

  /** To those who listen instead of looking. */
  say(text: string): void {
    this.announcement.value = text;
  }

  dispose(): void {
    for (const stop of this.#stop) stop();
  }
}

function withLesson(note: Note, { lessons, studying, enabled }: Learning): string {
  if (note.confirmed === null) return note.text;
  const lesson = lessons.findLast((item) => item.row === note.confirmed);
  if (studying === note.confirmed || (enabled && !lesson)) return `${note.text} Learning from it\u2026`;
  if (!lesson || lesson.outcome === "off") return `${note.text} Learning is off.`;
  return lesson.outcome === "learned"
    ? `${note.text} Learned: ${score(lesson.before)} → ${score(lesson.after)}.`
    : `${note.text} Not learned: ${lesson.reason}.`;
}

/** The last revision, step by step: the draft, forward to the right, backward to the left, the result. */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Sentence, Stage, StageWord } from "./protocol";

export interface Showing {
  readonly step: number;
  readonly playing: boolean;
}

/** A word of a stage; `order` is its turn to appear, null if it stood there before. */
export interface ArrivingWord extends StageWord {
  readonly order: number | null;
}

const READ_MS = 1600;
const WORD_MS = 110;

export class Playback {
  readonly showing: ReadonlySignal<Showing | null>;
  readonly stage: ReadonlySignal<Stage | null>;
  readonly words: ReadonlySignal<readonly ArrivingWord[]>;
  readonly #showing: Signal<Showing | null> = signal(null);
  readonly #sentence: ReadonlySignal<Sentence>;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(sentence: ReadonlySignal<Sentence>) {
    this.#sentence = sentence;
    this.showing = this.#showing;
    this.stage = computed(() => sentence.value.stages[this.#showing.value?.step ?? -1] ?? null);
    this.words = computed(() => {
      const step = this.#showing.value?.step ?? 0;
      return this.stage.value ? arriving(sentence.value.stages[step - 1], this.stage.value) : [];
    });
  }

  get steps(): number {
    return this.#sentence.value.stages.length;
  }

  /** Start over. Those who asked for reduced motion turn the pages themselves. */
  start(): void {
    if (this.steps > 0) this.#show(0, !prefersStillness());
  }

  step(by: -1 | 1): void {
    const now = this.#showing.value;
    if (now) this.#show(Math.max(0, Math.min(now.step + by, this.steps - 1)), false);
  }

  jump(step: number): void {
    this.#show(step, false);
  }

  toggle(): void {
    const now = this.#showing.value;
    if (!now) return;
    const ended = now.step === this.steps - 1;
    this.#show(!now.playing && ended ? 0 : now.step, !now.playing);
  }

  close = (): void => {
    clearTimeout(this.#timer);
    this.#showing.value = null;
  };

  dispose = (): void => clearTimeout(this.#timer);

  #show(step: number, playing: boolean): void {
    clearTimeout(this.#timer);
    this.#showing.value = { step, playing };
    if (!playing) return;
    const turns = this.words.value.filter((word) => word.order !== null).length;
    const last = step === this.steps - 1;
    const next = () => (last ? this.#show(step, false) : this.#show(step + 1, true));
    this.#timer = setTimeout(next, READ_MS + turns * WORD_MS);
  }
}

/** Which words are new in a stage, and in which order they were written: to the right going forward, to the left going back. */
export function arriving(before: Stage | undefined, stage: Stage): readonly ArrivingWord[] {
  const { words } = stage;
  const old = before?.words ?? words;
  const shorter = Math.min(old.length, words.length);
  const same = (a: number, b: number) => old.at(a)?.text === words.at(b)?.text;
  let head = 0;
  while (head < shorter && same(head, head)) head += 1;
  let tail = 0;
  while (tail < shorter && same(-1 - tail, -1 - tail)) tail += 1;
  const forward = (index: number) => (index >= head ? index - head : null);
  const first = words.length - tail;
  const backward = (index: number) => (index < first ? first - 1 - index : null);
  const order = stage.name === "forward" ? forward : stage.name === "backward" ? backward : () => null;
  return words.map((word, index) => ({ ...word, order: order(index) }));
}

function prefersStillness(): boolean {
  return typeof matchMedia === "function" && matchMedia("(prefers-reduced-motion: reduce)").matches;
}

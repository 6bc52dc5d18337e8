/** What the view needs from where it lives: state as signals, and a way to ask. A kernel or an offline page can be behind it. */
import type { ReadonlySignal } from "@preact/signals";
import type {
  AnyRequest,
  AnyResult,
  Learning,
  Looks,
  Memory,
  Overview,
  Problem,
  Sentence,
  Settings,
} from "./protocol";

export interface State {
  readonly overview: ReadonlySignal<Overview>;
  readonly sentence: ReadonlySignal<Sentence>;
  readonly looks: ReadonlySignal<Looks>;
  readonly memory: ReadonlySignal<Memory>;
  readonly learning: ReadonlySignal<Learning>;
  readonly settings: ReadonlySignal<Settings>;
}

/** live: somebody answers. silent: an answer is overdue. lost: nobody will any more. saved: nobody was there to begin with,
 * as in a notebook that was reopened. offline: a page that needs nobody. */
export type Connection = "live" | "silent" | "lost" | "saved" | "offline";

type Body<R> = R extends AnyRequest ? Omit<R, "view" | "id"> : never;
/** A request before the host gives it a number. */
export type Ask = Body<AnyRequest>;

export interface Host {
  readonly state: State;
  readonly connection: ReadonlySignal<Connection>;
  /** The last problem that belongs to no request. */
  readonly trouble: ReadonlySignal<Problem | null>;
  /** Settles with the result, or rejects with a `Refusal` or a `Superseded`. A change whose signal is aborted is stopped, if
   * that is not too late. */
  ask(request: Ask, signal?: AbortSignal): Promise<AnyResult>;
  dispose(): void;
}

/** The kernel said no, and why; `outdated` if only because the sentence reads differently by now. */
export class Refusal extends Error {
  constructor(
    readonly problem: Problem,
    readonly outdated = false,
  ) {
    super(problem.detail);
  }
}

/** It was stopped, or a newer question took its place: nothing happened, nothing to report. */
export class Superseded extends Error {}

/** The live host: an anywidget model whose traits are the state and whose messages carry requests and answers. */
import type { AnyModel } from "@anywidget/types";
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Ask, type Connection, type Host, Refusal, type State, Superseded } from "./host";
import type { Line } from "./jupyter";
import type {
  AnyAnswer,
  AnyResult,
  Learning,
  Looks,
  Memory,
  Overview,
  Problem,
  Sentence,
  Settings,
} from "./protocol";

interface Traits {
  readonly _overview: Overview;
  readonly _sentence: Sentence;
  readonly _looks: Looks;
  readonly _memory: Memory;
  readonly _learning: Learning;
  readonly _settings: Settings;
}

interface Waiting {
  readonly resolve: (result: AnyResult) => void;
  readonly reject: (reason: Error) => void;
}

/** After this long without an answer the view says so; the request itself stays open. */
const OVERDUE_MS = 4000;
/** How long a sign of life may take. Any answer is one: the first question may wait for a cell that runs, others do not. */
const ALIVE_MS = 2500;

/** The `view` of an answer that is meant for all of them. */
const EVERYBODY = "";

/** Why nothing can be done where nobody is there. */
const NOBODY: Partial<Record<Connection, Problem>> = {
  lost: {
    title: "The kernel is gone",
    detail: "This widget lost the kernel it was running in.",
    advice: "Run the cell again to go on. What you see here can still be read and copied.",
  },
  saved: {
    title: "This is a saved view",
    detail: "It holds the sentence that was last worked on, and no kernel is behind it.",
    advice: "Run the cell to go on working.",
  },
};

export class Kernel implements Host {
  readonly state: State;
  readonly connection: Signal<Connection> = signal("live");
  readonly trouble: Signal<Problem | null> = signal(null);
  readonly #model: AnyModel<Traits>;
  readonly #view = crypto.getRandomValues(new Uint32Array(2)).join("-");
  readonly #waiting = new Map<number, Waiting>();
  /** Runs while an answer is waited for, and begins anew with each that comes. */
  #silence: ReturnType<typeof setTimeout> | undefined;
  /** The first question, whether anybody is there, until anything is answered. */
  #greeting: number | null = null;
  readonly #off: (() => void)[] = [];
  #last = 0;

  constructor(model: AnyModel<Traits>, line: Pick<Line, "cut" | "watch">) {
    this.#model = model;
    this.state = {
      overview: this.#trait("_overview"),
      sentence: this.#trait("_sentence"),
      looks: this.#trait("_looks"),
      memory: this.#trait("_memory"),
      learning: this.#trait("_learning"),
      settings: this.#trait("_settings"),
    };
    this.#listen("msg:custom", (answer: AnyAnswer) => this.#settle(answer));
    // Jupyter's widget models say so when their line to the kernel is cut (restart) or mended, but not that it was shut down.
    const look = () => (line.cut ? this.#lose() : this.#check());
    this.#listen("comm_live_update", look);
    this.#off.push(line.watch(look));
    if (line.cut) this.connection.value = "saved";
    else this.#greet();
  }

  ask(request: Ask, signal?: AbortSignal): Promise<AnyResult> {
    const nobody = NOBODY[this.connection.value];
    return nobody ? Promise.reject(new Refusal(nobody)) : this.#send(request, signal);
  }

  #send(request: Ask, signal?: AbortSignal): Promise<AnyResult> {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      if (this.#waiting.size === 1) this.#await(OVERDUE_MS);
      const stop = () => this.ask({ type: "cancel", request: id }).catch(() => {});
      signal?.addEventListener("abort", stop, { once: true });
      try {
        this.#model.send({ ...request, view: this.#view, id });
      } catch {
        this.#lose(); // the line is cut, and nobody said so
      }
    });
  }

  dispose(): void {
    for (const off of this.#off) off();
    this.#waiting.clear();
    clearTimeout(this.#silence);
  }

  /** A request that waits no longer. */
  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Say so if nothing is heard for this long while something is waited for. */
  #await(time: number): void {
    clearTimeout(this.#silence);
    if (this.#waiting.size === 0) return;
    this.#silence = setTimeout(() => {
      if (this.connection.value === "live") this.connection.value = "silent";
    }, time);
  }

  #trait<K extends keyof Traits & string>(name: K): ReadonlySignal<Traits[K]> {
    const value = signal(this.#model.get(name));
    this.#listen(`change:${name}`, () => {
      value.value = this.#model.get(name);
    });
    return value;
  }

  #listen(event: string, heard: (answer: AnyAnswer) => void): void {
    this.#model.on(event, heard);
    this.#off.push(() => this.#model.off(event, heard));
  }

  #settle(answer: AnyAnswer): void {
    if (answer.view === EVERYBODY && answer.type === "failed") this.trouble.value = answer.problem;
    if (answer.view !== this.#view) return;
    const waiting = this.#take(answer.id);
    if (this.#greeting !== null) this.#take(this.#greeting);
    this.#greeting = null;
    this.connection.value = "live";
    this.#await(OVERDUE_MS);
    if (answer.type === "done") waiting?.resolve(answer.result);
    else if (answer.type === "cancelled") waiting?.reject(new Superseded());
    else waiting?.reject(new Refusal(answer.problem, answer.outdated));
  }

  /** Is anybody there? Silence at the beginning may be a busy kernel. */
  #greet(): void {
    this.#send({ type: "hello" }).catch(() => {});
    this.#greeting = this.#last;
    this.#await(ALIVE_MS);
  }

  /** Silence after the host cut the line is the end of it. What is answered now may have been asked before that. */
  #check(): void {
    const timer = setTimeout(() => this.#lose(), ALIVE_MS);
    this.#off.push(() => clearTimeout(timer));
    this.#send({ type: "hello" }).then(
      () => clearTimeout(timer),
      () => {},
    );
  }

  #lose(): void {
    // What was never more than a saved view stays one.
    if (this.connection.value !== "saved") this.connection.value = "lost";
    const problem = NOBODY[this.connection.value] as Problem;
    for (const id of this.#waiting.keys()) this.#take(id)?.reject(new Refusal(problem));
  }
}

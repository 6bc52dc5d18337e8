/** The read-only host of a page written by `to_html`: every sentence is in the page, and nobody is asked. */
import { batch, type Signal, signal } from "@preact/signals";
import { type Ask, type Connection, type Host, Refusal, type State } from "./host";
import type { AnyResult, Learning, Looks, Memory, Overview, Problem, Sentence, Settings } from "./protocol";

export interface Page {
  readonly overview: Overview;
  readonly sentences: readonly Sentence[];
  readonly looks: readonly Looks[];
  readonly row: number;
  readonly memory: Memory;
  readonly learning: Learning;
  readonly settings: Settings;
}

export class Offline implements Host {
  readonly state: State;
  readonly connection: Signal<Connection> = signal("offline");
  readonly trouble: Signal<Problem | null> = signal(null);
  readonly #page: Page;
  readonly #sentence: Signal<Sentence>;
  readonly #looks: Signal<Looks>;

  constructor(page: Page) {
    this.#page = page;
    this.#sentence = signal(at(page.sentences, page.row));
    this.#looks = signal(at(page.looks, page.row));
    this.state = {
      overview: signal(page.overview),
      sentence: this.#sentence,
      looks: this.#looks,
      memory: signal(page.memory),
      learning: signal(page.learning),
      settings: signal(page.settings),
    };
  }

  async ask(request: Ask): Promise<AnyResult> {
    if (request.type !== "go")
      throw new Refusal({
        title: "This page is a picture",
        detail: "It was exported from a notebook and has no translator behind it.",
        advice: "Open the notebook to go on working.",
      });
    batch(() => {
      this.#sentence.value = at(this.#page.sentences, request.row);
      this.#looks.value = at(this.#page.looks, request.row);
    });
    return { kind: "nothing" };
  }

  dispose(): void {}
}

function at<T>(items: readonly T[], row: number): T {
  const found = items[row];
  if (!found) throw new RangeError(`this page has no sentence ${row + 1}`);
  return found;
}

/** A sentence on a desk, for the tests: a host that answers what a test tells it to, and nothing by itself. */
import { type Signal, signal } from "@preact/signals";
import type { Ask, Connection, Host, State } from "../src/host";
import type {
  AnyResult,
  Entry,
  Learning,
  Looks,
  Memory,
  Overview,
  Problem,
  Sentence,
  Settings,
  Word,
} from "../src/protocol";

export function word(text: string, more: Partial<Word> = {}): Word {
  return {
    text,
    space: true,
    origin: "draft",
    locked: false,
    probability: 0.5,
    theta: 0,
    memory: null,
    recalled: 0,
    like: null,
    attention: [],
    ...more,
  };
}

export function sentence(text: string, more: Partial<Sentence> = {}): Sentence {
  const words = text.split(" ").map((item, index) => word(item, { space: index > 0, attention: [10, 80] }));
  return {
    row: 0,
    version: 1,
    status: "draft",
    source: [
      { text: "我们", space: false },
      { text: "看到", space: false },
    ],
    words,
    can_undo: false,
    can_redo: false,
    can_unconfirm: false,
    stages: [],
    problem: null,
    ...more,
  };
}

export function entry(id: number, text: string, more: Partial<Entry> = {}): Entry {
  return {
    id,
    text,
    source: "我们看到了他",
    target: `We ${text} him`,
    row: 0,
    pinned: false,
    copies: 0,
    ...more,
  };
}

const NOTHING: AnyResult = { kind: "nothing" };

export class TestHost implements Host {
  readonly asked: Ask[] = [];
  readonly connection: Signal<Connection> = signal("live");
  readonly trouble: Signal<Problem | null> = signal(null);
  readonly overview: Signal<Overview>;
  readonly sentence: Signal<Sentence>;
  readonly looks: Signal<Looks> = signal({ row: 0, version: 1, cells: [] });
  readonly memory: Signal<Memory> = signal({ enabled: true, entries: [] });
  readonly learning: Signal<Learning> = signal({ enabled: true, lessons: [], studying: null });
  readonly settings: Signal<Settings> = signal({
    beam: 4,
    widest_beam: 64,
    stability: 0.1,
    protocol: "bidirectional",
    protocols: ["replace-only", "bidirectional"],
  });
  /** What the next requests come to; by default they are done. */
  reply: (request: Ask, signal?: AbortSignal) => AnyResult | Promise<AnyResult> = () => NOTHING;
  disposed = false;

  constructor(first: Sentence = sentence("We saw him in the park ."), rows = 3) {
    this.sentence = signal(first);
    this.overview = signal({
      model: "zh-en",
      source_language: "zh",
      target_language: "en",
      rows: Array.from({ length: rows }, (_, row) => ({
        source: `句子 ${row + 1}`,
        text: `Sentence ${row + 1}`,
        status: "draft" as const,
        revisions: 0,
        seconds: 0,
      })),
    });
  }

  get state(): State {
    return this;
  }

  async ask(request: Ask, signal?: AbortSignal): Promise<AnyResult> {
    this.asked.push(request);
    return this.reply(request, signal);
  }

  dispose(): void {
    this.disposed = true;
  }

  get last(): Ask | undefined {
    return this.asked.at(-1);
  }
}

/** Let promises settle. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
}

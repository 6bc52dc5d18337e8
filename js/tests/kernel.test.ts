import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Refusal, Superseded } from "../src/host";
import { Kernel } from "../src/kernel";
import { sentence, settled } from "./desk";

type Heard = (message?: unknown) => void;

/** What anywidget hands to a view: traits, events, messages. */
class Model {
  readonly sent: Record<string, unknown>[] = [];
  readonly traits: Record<string, unknown> = { _sentence: sentence("We saw him") };
  readonly heard = new Map<string, Set<Heard>>();

  get(name: string): unknown {
    return this.traits[name];
  }
  on(event: string, heard: Heard): void {
    this.heard.set(event, (this.heard.get(event) ?? new Set()).add(heard));
  }
  off(event: string, heard: Heard): void {
    this.heard.get(event)?.delete(heard);
  }
  send(message: Record<string, unknown>): void {
    this.sent.push(message);
  }
  tell(event: string, message?: unknown): void {
    for (const heard of this.heard.get(event) ?? []) heard(message);
  }
}

let model: Model;
let kernel: Kernel;

beforeEach(() => {
  model = new Model();
  kernel = new Kernel(model as unknown as ConstructorParameters<typeof Kernel>[0]);
  model.tell("msg:custom", done()); // its first question is whether anybody is there
});

afterEach(() => {
  kernel.dispose();
  vi.useRealTimers();
});

const ids = (index = -1) => {
  const { view, id } = model.sent.at(index) as { view: string; id: number };
  return { view, id };
};
const done = (index = -1) => ({ type: "done", ...ids(index), result: { kind: "nothing" } });

describe("an answer", () => {
  it("settles the request with its number, in whatever order answers come", async () => {
    const first = kernel.ask({ type: "undo", row: 0 });
    const second = kernel.ask({ type: "redo", row: 0 });
    const order: string[] = [];
    void first.then(() => order.push("first"));
    void second.then(() => order.push("second"));
    model.tell("msg:custom", done(2));
    await settled();
    model.tell("msg:custom", done(1));
    await settled();
    expect(order).toEqual(["second", "first"]);
  });

  it("to another view is none of ours", async () => {
    const asked = kernel.ask({ type: "undo", row: 0 });
    const settledAs = vi.fn();
    void asked.then(settledAs);
    model.tell("msg:custom", { ...done(), view: "somebody else" });
    await settled();
    expect(settledAs).not.toHaveBeenCalled();
  });

  it("can be a refusal with a reason, or that something newer came", async () => {
    const problem = { title: "No", detail: "because", advice: "try" };
    const refused = kernel.ask({ type: "undo", row: 0 });
    model.tell("msg:custom", { type: "failed", ...ids(), problem });
    await expect(refused).rejects.toEqual(new Refusal(problem));
    const overtaken = kernel.ask({ type: "undo", row: 0 });
    model.tell("msg:custom", { type: "cancelled", ...ids() });
    await expect(overtaken).rejects.toBeInstanceOf(Superseded);
  });
});

it("stops a change by its number", () => {
  const stop = new AbortController();
  void kernel.ask({ type: "undo", row: 0 }, stop.signal);
  const { id } = ids();
  stop.abort();
  expect(model.sent.at(-1)).toMatchObject({ type: "cancel", request: id });
});

it("follows the traits", () => {
  expect(kernel.state.sentence.value.words).toHaveLength(3);
  model.traits._sentence = sentence("We met");
  model.tell("change:_sentence");
  expect(kernel.state.sentence.value.words).toHaveLength(2);
});

describe("the connection", () => {
  it("falls silent when an answer is overdue, and recovers", () => {
    vi.useFakeTimers();
    void kernel.ask({ type: "undo", row: 0 });
    vi.advanceTimersByTime(5000);
    expect(kernel.connection.value).toBe("silent");
    model.tell("msg:custom", done());
    expect(kernel.connection.value).toBe("live");
  });

  it("is silent as long as any answer is overdue, whatever else is answered", () => {
    vi.useFakeTimers();
    void kernel.ask({ type: "undo", row: 0 });
    vi.advanceTimersByTime(3000);
    void kernel.ask({ type: "redo", row: 0 });
    model.tell("msg:custom", done());
    vi.advanceTimersByTime(2000);
    expect(kernel.connection.value).toBe("silent");
    model.tell("msg:custom", done(-2));
    expect(kernel.connection.value).toBe("live");
  });

  it("is not called silent while answers come", () => {
    vi.useFakeTimers();
    void kernel.ask({ type: "undo", row: 0 });
    model.tell("msg:custom", done());
    vi.advanceTimersByTime(60_000);
    expect(kernel.connection.value).toBe("live");
  });

  it("is lost when the host cut the line and nobody answers, and open requests are refused", async () => {
    vi.useFakeTimers();
    const asked = kernel.ask({ type: "undo", row: 0 });
    const refused = expect(asked).rejects.toBeInstanceOf(Refusal);
    model.tell("comm_live_update");
    vi.advanceTimersByTime(3000);
    await refused;
    expect(kernel.connection.value).toBe("lost");
  });

  it("stays when the line was mended", async () => {
    vi.useFakeTimers();
    model.tell("comm_live_update");
    model.tell("msg:custom", done());
    await vi.advanceTimersByTimeAsync(60_000);
    expect(kernel.connection.value).toBe("live");
  });

  it("is silent from the start where nobody answers, as in a notebook that was saved and reopened", () => {
    vi.useFakeTimers();
    const later = new Kernel(model as unknown as ConstructorParameters<typeof Kernel>[0]);
    vi.advanceTimersByTime(3000);
    expect(later.connection.value).toBe("silent");
    later.dispose();
  });
});

it("leaves nothing behind", () => {
  kernel.dispose();
  expect([...model.heard.values()].every((listeners) => listeners.size === 0)).toBe(true);
});

it("that cannot be sent to is gone, and says so", async () => {
  model.send = () => {
    throw new Error("Cannot send");
  };
  await expect(kernel.ask({ type: "undo", row: 0 })).rejects.toThrow(Refusal);
  expect(kernel.connection.value).toBe("lost");
});

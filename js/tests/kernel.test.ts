import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Refusal, Superseded } from "../src/host";
import { Line } from "../src/jupyter";
import { Kernel } from "../src/kernel";
import { sentence, settled } from "./desk";

type Heard = (message?: unknown) => void;

/** What anywidget hands to a view: traits, events, messages. */
class Model {
  readonly widget_manager?: unknown;
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
let view: HTMLElement;

function connect(to: Model): Kernel {
  const given = to as unknown as ConstructorParameters<typeof Kernel>[0];
  return new Kernel(given, new Line(given, view));
}

beforeEach(() => {
  model = new Model();
  view = document.createElement("div");
  kernel = connect(model);
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

  it("is silent while an answer is overdue and nothing else is answered either", () => {
    vi.useFakeTimers();
    void kernel.ask({ type: "undo", row: 0 });
    vi.advanceTimersByTime(3000);
    void kernel.ask({ type: "redo", row: 0 });
    model.tell("msg:custom", done());
    vi.advanceTimersByTime(3000);
    expect(kernel.connection.value).toBe("live");
    vi.advanceTimersByTime(2000);
    expect(kernel.connection.value).toBe("silent");
    void kernel.ask({ type: "redo", row: 0 });
    model.tell("msg:custom", done());
    expect(kernel.connection.value).toBe("live");
  });

  it("is there when anything is answered, although the first question waits for a cell that runs", () => {
    vi.useFakeTimers();
    const first = connect(model);
    const hello = done();
    vi.advanceTimersByTime(1000);
    void first.ask({ type: "undo", row: 0 });
    model.tell("msg:custom", done());
    vi.advanceTimersByTime(9000);
    expect(first.connection.value).toBe("live");
    model.tell("msg:custom", hello);
    expect(first.connection.value).toBe("live");
    first.dispose();
  });

  it("falls silent once more only for what was asked and not answered since", () => {
    vi.useFakeTimers();
    const first = connect(model);
    vi.advanceTimersByTime(3000);
    expect(first.connection.value).toBe("silent");
    void first.ask({ type: "undo", row: 0 });
    model.tell("msg:custom", done());
    expect(first.connection.value).toBe("live");
    vi.advanceTimersByTime(9000);
    expect(first.connection.value).toBe("live");
    first.dispose();
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
    const later = connect(model);
    vi.advanceTimersByTime(3000);
    expect(later.connection.value).toBe("silent");
    later.dispose();
  });
});

/** A signal of Lumino. */
class Told {
  readonly slots = new Set<(sender: unknown, value: unknown) => void>();
  connect(slot: () => void): void {
    this.slots.add(slot);
  }
  disconnect(slot: () => void): void {
    this.slots.delete(slot);
  }
  emit(value: unknown): void {
    for (const slot of this.slots) slot(this, value);
  }
}

describe("what a notebook says of the line", () => {
  it("is at once that a view was saved, and then nothing is sent and nothing can be asked", async () => {
    view.className = "jupyter-widgets-disconnected";
    const sent = model.sent.length;
    const saved = connect(model);
    expect(saved.connection.value).toBe("saved");
    await expect(saved.ask({ type: "go", row: 1 })).rejects.toThrow(/no kernel is behind it/);
    expect(model.sent).toHaveLength(sent);
    model.tell("comm_live_update");
    expect(saved.connection.value).toBe("saved");
    saved.dispose();
  });

  it("is nothing where a host has only part of it", () => {
    const widget_manager = { kernel: {}, context: { sessionContext: { kernelChanged: { connect() {} } } } };
    for (const given of [{ widget_manager }, { widget_manager: {} }, {}]) {
      const hosted = connect(Object.assign(new Model(), given));
      expect(hosted.connection.value).toBe("live");
      hosted.dispose();
    }
  });

  it("is at once that the line was cut, without waiting for an answer", () => {
    view.className = "jupyter-widgets-disconnected";
    model.tell("comm_live_update");
    expect(kernel.connection.value).toBe("lost");
  });

  it("is that the kernel was shut down, or has died, before anybody does anything", async () => {
    vi.useFakeTimers();
    const [kernelChanged, statusChanged] = [new Told(), new Told()];
    const manager = {
      kernel: {} as object | null,
      context: { sessionContext: { kernelChanged, statusChanged } },
    };
    const hosted = Object.assign(new Model(), { widget_manager: manager });
    const running = connect(hosted);
    hosted.tell("msg:custom", {
      type: "done",
      view: hosted.sent[0]?.view,
      id: 1,
      result: { kind: "nothing" },
    });
    statusChanged.emit("busy");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(running.connection.value).toBe("live");
    statusChanged.emit("autorestarting");
    await vi.advanceTimersByTimeAsync(3000);
    expect(running.connection.value).toBe("lost");
    hosted.tell("msg:custom", {
      type: "done",
      view: hosted.sent[0]?.view,
      id: 2,
      result: { kind: "nothing" },
    });
    expect(running.connection.value).toBe("live");
    manager.kernel = null;
    kernelChanged.emit({});
    expect(running.connection.value).toBe("lost");
    Object.defineProperty(manager, "kernel", {
      get() {
        throw new TypeError("the notebook is closed");
      },
    });
    expect(() => kernelChanged.emit({})).not.toThrow();
    running.dispose();
    expect(kernelChanged.slots.size + statusChanged.slots.size).toBe(0);
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

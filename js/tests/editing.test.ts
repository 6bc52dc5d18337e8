import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { outcomeOf } from "../src/editing";
import { Store } from "../src/store";
import { sentence, settled, TestHost } from "./desk";

const items = [
  { text: "met", probability: 0.6, memory: 1 },
  { text: "watched", probability: 0.2, memory: null },
];

afterEach(() => {
  vi.useRealTimers();
});

let host: TestHost;
let store: Store;
const editor = () => store.editing.editor.value;

beforeEach(async () => {
  host = new TestHost();
  host.reply = (request) =>
    request.type === "alternatives" || request.type === "complete"
      ? { kind: "suggestions", items }
      : { kind: "nothing" };
  store = new Store(host);
});

describe("opening", () => {
  it("shows the word and asks for alternatives", async () => {
    store.editing.open({ start: 1, stop: 2 });
    expect(editor()).toMatchObject({ mode: "replace", text: "saw", original: "saw", loading: true });
    expect(host.last).toMatchObject({ type: "alternatives", start: 1, stop: 2, version: 1 });
    await settled();
    expect(editor()).toMatchObject({ suggestions: items, loading: false, chosen: -1, text: "saw" });
  });

  it("over a phrase shows the phrase", () => {
    store.editing.open({ start: 3, stop: 6 });
    expect(editor()?.text).toBe("in the park");
  });

  it("by typing starts from what was typed and completes it", () => {
    store.editing.open({ start: 1, stop: 2 }, "m");
    expect(editor()).toMatchObject({ text: "m", original: "saw" });
    expect(host.last).toMatchObject({ type: "complete", start: 1, stop: 2, typed: "m" });
  });

  it("elsewhere takes along what was typed, and nothing that was not", async () => {
    store.editing.open({ start: 1, stop: 2 });
    store.editing.type("met");
    store.editing.openGap(4);
    expect(host.asked).toContainEqual(expect.objectContaining({ type: "replace", start: 1, text: "met" }));
    expect(editor()).toMatchObject({ mode: "insert", start: 4, text: "" });
    await settled();
    host.asked.length = 0;
    store.editing.open({ start: 2, stop: 3 });
    store.editing.type("");
    store.editing.open({ start: 0, stop: 1 });
    expect(editor()).toMatchObject({ mode: "replace", start: 0, text: "We" });
    expect(host.asked.every(({ type }) => type === "alternatives" || type === "complete")).toBe(true);
  });

  it("is not possible in a confirmed sentence", () => {
    host.sentence.value = sentence("We met", { status: "confirmed" });
    store.editing.open({ start: 0, stop: 1 });
    store.editing.openGap(0);
    expect(editor()).toBeNull();
    expect(store.messages.noteText.value).toContain("is confirmed");
  });
});

describe("Enter", () => {
  beforeEach(async () => {
    store.editing.open({ start: 1, stop: 2 });
    await settled();
    host.asked.length = 0;
  });

  it("never accepts a suggestion that the input does not show", () => {
    store.editing.type("me");
    store.editing.apply();
    const effort = { keystrokes: 0, mouse: 0 };
    const where = { row: 0, version: 1, start: 1, stop: 2 };
    expect(host.last).toEqual({ type: "replace", ...where, text: "me", effort });
  });

  it("takes the suggestion that was stepped to, because the input shows it", () => {
    store.editing.step(1);
    expect(editor()?.text).toBe("met");
    store.editing.apply();
    expect(host.last).toMatchObject({ type: "replace", start: 1, stop: 2, text: "met" });
  });

  it("closes when nothing was changed", () => {
    store.editing.apply();
    expect(host.asked).toEqual([]);
    expect(editor()).toBeNull();
  });

  it("on an emptied input deletes the word", () => {
    store.editing.type("  ");
    store.editing.apply();
    expect(host.asked.find((request) => request.type === "delete")).toMatchObject({ start: 1, stop: 2 });
  });

  it("says beforehand what it will do", () => {
    const now = () => editor() && outcomeOf(editor() as NonNullable<ReturnType<typeof editor>>);
    expect(now()).toBe("close");
    store.editing.type("met");
    expect(now()).toBe("replace");
    store.editing.type("");
    expect(now()).toBe("delete");
    store.editing.openGap(2);
    expect(now()).toBe("close");
    store.editing.type("not");
    expect(now()).toBe("insert");
  });
});

describe("stepping", () => {
  beforeEach(async () => {
    store.editing.open({ start: 1, stop: 2 });
    await settled();
  });

  it("goes round, by way of what was typed", () => {
    const seen = [1, 2, 3].map(() => {
      store.editing.step(1);
      return editor()?.text;
    });
    expect(seen).toEqual(["met", "watched", "saw"]);
    store.editing.step(-1);
    expect(editor()?.text).toBe("watched");
  });

  it("is not undone by a list that arrives late", async () => {
    store.editing.type("m");
    store.editing.step(1);
    await settled();
    expect(editor()).toMatchObject({ text: "met", chosen: 0 });
  });
});

it("narrows the list at once while new completions are on their way", async () => {
  store.editing.open({ start: 1, stop: 2 });
  await settled();
  store.editing.type("W");
  expect(editor()?.suggestions.map((item) => item.text)).toEqual(["watched"]);
});

it("inserts into a gap", async () => {
  store.editing.openGap(2);
  store.editing.type("almost");
  store.editing.apply();
  expect(host.asked.find((request) => request.type === "insert")).toMatchObject({ at: 2, text: "almost" });
  await settled();
});

it("takes a suggestion that is pointed at", () => {
  store.editing.open({ start: 1, stop: 2 });
  store.editing.take({ text: "met", probability: 0.6, memory: 1 });
  expect(host.last).toMatchObject({ type: "replace", text: "met" });
});

it("drops suggestions for an editor that is closed", async () => {
  store.editing.open({ start: 1, stop: 2 });
  store.editing.close();
  await settled();
  expect(editor()).toBeNull();
});

describe("a sentence that changes while somebody types", () => {
  const arrive = (text: string) => {
    host.sentence.value = sentence(text, { version: 2 });
  };

  it("takes the editor along with its word, and what was typed", async () => {
    store.editing.open({ start: 2, stop: 3 }, "her");
    arrive("Yesterday we met him in the park .");
    expect(editor()).toMatchObject({ mode: "replace", start: 3, stop: 4, original: "him", text: "her" });
    expect(host.last).toMatchObject({ type: "complete", version: 2, start: 3, typed: "her" });
    store.editing.apply();
    expect(host.last).toMatchObject({ type: "replace", version: 2, start: 3, text: "her" });
    await settled();
  });

  it("never takes what was typed away: without its word it is an insertion", () => {
    store.editing.open({ start: 2, stop: 3 }, "her");
    arrive("We saw the park .");
    expect(editor()).toMatchObject({ mode: "insert", start: 2, text: "her" });
  });

  it("closes an editor in which nothing was typed, if its word is gone", () => {
    store.editing.open({ start: 2, stop: 3 });
    arrive("We saw the park .");
    expect(editor()).toBeNull();
  });

  it("is no reason to stop a change by an Escape that was meant for the editor", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    host.reply = () => new Promise(() => undefined);
    void store.changes.replace({ start: 0, stop: 1 }, "They");
    void store.changes.replace({ start: 5, stop: 6 }, "garden");
    const waiting = () => store.changes.pending.value.map((edit) => edit.text);
    store.editing.open({ start: 2, stop: 3 });
    arrive("They saw the park .");
    expect(editor()).toBeNull();
    expect(store.escape()).toBe(true);
    expect(waiting()).toEqual(["garden"]);
    vi.advanceTimersByTime(2000);
    expect(store.escape()).toBe(true);
    expect(waiting()).toEqual([]);
  });
});

describe("turning elsewhere", () => {
  const asked = () => host.asked.map((request) => request.type).filter((type) => type !== "alternatives");

  it("takes what was typed", async () => {
    store.editing.open({ start: 1, stop: 2 }, "met");
    store.editing.settle();
    await settled();
    expect(editor()).toBeNull();
    expect(host.last).toMatchObject({ type: "replace", start: 1, stop: 2, text: "met" });
  });

  it("by way of Confirm takes it first", async () => {
    store.editing.open({ start: 1, stop: 2 }, "met");
    store.editing.settle();
    store.changes.confirm();
    await settled();
    expect(asked().slice(-2)).toEqual(["replace", "confirm"]);
  });

  it("takes no suggestion that was only looked at, and deletes nothing", async () => {
    store.editing.open({ start: 1, stop: 2 });
    await settled();
    store.editing.step(1);
    store.editing.settle();
    store.editing.open({ start: 1, stop: 2 }, "");
    store.editing.settle();
    await settled();
    expect(asked()).not.toContain("replace");
    expect(asked()).not.toContain("delete");
  });

  it.each(["lost", "confirmed"])(
    "that is taken too late, when all is %s, is not dropped without a word",
    (why) => {
      store.editing.open({ start: 1, stop: 2 }, "met");
      if (why === "lost") host.connection.value = "lost";
      else host.sentence.value = { ...host.sentence.value, status: "confirmed" };
      store.editing.apply();
      expect(asked()).not.toContain("replace");
      expect(store.messages.problem.value).toMatchObject({ typed: "met" });
    },
  );

  it("by somebody else says what was typed", () => {
    store.editing.open({ start: 1, stop: 2 }, "met");
    host.sentence.value = { ...sentence("Another one"), row: 1 };
    expect(editor()).toBeNull();
    expect(store.messages.problem.value).toMatchObject({ typed: "met" });
  });
});

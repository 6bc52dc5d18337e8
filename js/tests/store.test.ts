import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Refusal, Superseded } from "../src/host";
import type { Lesson } from "../src/protocol";
import { Store } from "../src/store";
import { sentence, settled, TestHost, word } from "./desk";

let host: TestHost;
let store: Store;

beforeEach(() => {
  host = new TestHost();
  store = new Store(host);
});

afterEach(() => store.dispose());

const problem = { title: "No", detail: "because", advice: "try" };

describe("a change", () => {
  it("names the wording it is about and what it took", async () => {
    store.effort.click();
    for (const key of ["m", "e", "t", "Enter", "Shift"]) store.effort.key({ key });
    await store.replace({ start: 1, stop: 2 }, "met");
    expect(host.last).toEqual({
      type: "replace",
      row: 0,
      version: 1,
      start: 1,
      stop: 2,
      text: "met",
      effort: { keystrokes: 4, mouse: 1 },
    });
    await store.delete({ start: 0, stop: 1 });
    expect(host.last).toMatchObject({ type: "delete", effort: { keystrokes: 0, mouse: 0 } });
  });

  it("is shown at once, and gone when it is done", async () => {
    const done = store.replace({ start: 1, stop: 2 }, "met");
    expect(store.pending.value).toEqual({ start: 1, stop: 2, text: "met" });
    expect(store.busy.value).toBe(true);
    await done;
    expect(store.pending.value).toBeNull();
  });

  it("takes the focus to where the new word stands now, and says what changed", async () => {
    host.reply = () => {
      host.sentence.value = sentence("Yesterday we met him", {
        version: 2,
        words: [word("Yesterday", { origin: "changed" }), word("we"), word("met", { origin: "yours" })],
      });
      return { kind: "nothing" };
    };
    await store.replace({ start: 1, stop: 2 }, "met");
    expect(store.focus.value).toBe(2);
    expect(store.announcement.value).toBe("Yesterday we met 1 word changed for you.");
  });

  it("that a newer one overtook leaves the newer one standing", async () => {
    let overtake: () => void = () => {};
    host.reply = () => new Promise((_, reject) => (overtake = () => reject(new Superseded())));
    const first = store.replace({ start: 1, stop: 2 }, "met");
    const stop = overtake;
    host.reply = () => new Promise(() => {});
    void store.replace({ start: 2, stop: 3 }, "her");
    stop();
    await first;
    expect(store.pending.value?.text).toBe("her");
    expect(store.problem.value).toBeNull();
  });

  it("that is refused is shown with its reason, and the next one clears it", async () => {
    host.reply = () => Promise.reject(new Refusal(problem));
    await store.insert(0, "x");
    expect(store.problem.value).toEqual(problem);
    expect(store.pending.value).toBeNull();
    host.reply = () => ({ kind: "nothing" });
    await store.insert(0, "x");
    expect(store.problem.value).toBeNull();
  });

  it("is not asked for when nobody would carry it out", async () => {
    host.connection.value = "lost";
    await store.replace({ start: 0, stop: 1 }, "x");
    host.connection.value = "live";
    host.sentence.value = sentence("We met", { status: "confirmed" });
    await store.delete({ start: 0, stop: 1 });
    await store.confirm();
    expect(host.asked).toEqual([]);
  });
});

describe("undo", () => {
  it("stops what is running before it undoes what was done", async () => {
    host.sentence.value = sentence("We saw", { can_undo: true });
    host.reply = () => new Promise(() => {});
    void store.replace({ start: 1, stop: 2 }, "met");
    host.reply = () => ({ kind: "nothing" });
    await store.undo();
    expect(host.last).toEqual({ type: "cancel", row: 0 });
    await store.undo();
    expect(host.last).toEqual({ type: "undo", row: 0 });
  });

  it("does nothing where there is nothing to undo", async () => {
    await store.undo();
    await store.redo();
    expect(host.asked).toEqual([]);
  });
});

describe("locking", () => {
  it("locks, and releases when all of it is locked", async () => {
    await store.toggleKeep({ start: 0, stop: 2 });
    expect(host.last).toMatchObject({ type: "keep", start: 0, stop: 2 });
    host.sentence.value = sentence("We saw", {
      words: [word("We", { locked: true }), word("saw", { locked: true })],
    });
    await store.toggleKeep({ start: 0, stop: 2 });
    expect(host.last).toMatchObject({ type: "release" });
  });
});

describe("confirming", () => {
  const lesson = {
    row: 0,
    accepted: true,
    before: -1.92,
    after: -1.61,
    guard: 0,
    seconds: 0.2,
    reason: "learned",
  };

  const answer = (lessons: readonly Lesson[], studying: number | null) => () => {
    host.learning.value = { enabled: true, lessons, studying };
    host.sentence.value = sentence("He is", { row: 1 });
    return { kind: "nothing" as const };
  };

  it("says so at once, and what was learned when that is known", async () => {
    host.reply = answer([], 0);
    await store.confirm();
    expect(store.noteText.value).toBe("Sentence 1 confirmed. Learning from it\u2026");
    host.learning.value = { enabled: true, lessons: [lesson], studying: null };
    expect(store.noteText.value).toBe("Sentence 1 confirmed. Learned: \u22121.92 → \u22121.61.");
    expect(store.announcement.value).toBe(store.noteText.value);
  });

  it("tells why nothing was learned", async () => {
    host.reply = answer([{ ...lesson, accepted: false, reason: "the guard set would get worse" }], null);
    await store.confirm();
    expect(store.noteText.value).toContain("Not learned: the guard set would get worse.");
  });

  it("does not speak of learning where it is switched off", async () => {
    host.reply = answer([{ ...lesson, accepted: false, reason: "learning is switched off" }], null);
    await store.confirm();
    host.learning.value = { ...host.learning.value, enabled: false };
    expect(store.noteText.value).toBe("Sentence 1 confirmed.");
  });
});

it("shows a problem that belongs to no request", () => {
  host.trouble.value = problem;
  expect(store.problem.value).toEqual(problem);
});

describe("moving", () => {
  it("stays inside the sentence", () => {
    store.focusOn(-3);
    expect(store.focus.value).toBe(0);
    store.focusOn(99);
    expect(store.focus.value).toBe(6);
  });

  it("selects from the anchor, in either direction", () => {
    store.focusOn(3);
    store.focusOn(1, true);
    expect(store.span.value).toEqual({ start: 1, stop: 4 });
    store.focusOn(5, true);
    expect(store.span.value).toEqual({ start: 3, stop: 6 });
    store.focusOn(0);
    expect(store.span.value).toEqual({ start: 0, stop: 1 });
  });

  it("forgets what pointed into another sentence", () => {
    store.focusOn(4, true);
    store.editing.open(store.span.value);
    store.problem.value = problem;
    host.sentence.value = sentence("He is", { row: 1 });
    expect(store.focus.value).toBe(0);
    expect(store.editing.editor.value).toBeNull();
    expect(store.problem.value).toBeNull();
  });

  it("keeps its place in a new wording of the same sentence, as far as there is one", () => {
    store.focusOn(6);
    host.sentence.value = sentence("We met", { version: 2 });
    expect(store.focus.value).toBe(1);
  });

  it("goes to sentences that exist", async () => {
    store.go(7);
    store.go(-1);
    store.go(0);
    expect(host.asked).toEqual([]);
    store.go(2);
    expect(host.last).toEqual({ type: "go", row: 2 });
    await settled();
  });
});

describe("backing out", () => {
  it("closes the innermost thing first", () => {
    store.focusOn(2, true);
    store.panel.value = "help";
    store.editing.open({ start: 0, stop: 1 });
    expect(store.escape()).toBe(true);
    expect(store.editing.editor.value).toBeNull();
    store.escape();
    expect(store.panel.value).toBeNull();
    expect(store.escape()).toBe(false);
  });
});

it("lets the host go", () => {
  store.dispose();
  expect(host.disposed).toBe(true);
});

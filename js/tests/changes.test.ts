import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Ask, Refusal, Superseded } from "../src/host";
import type { AnyResult, Lesson } from "../src/protocol";
import { Store } from "../src/store";
import { sentence, settled, TestHost, word } from "./desk";

interface Open {
  readonly request: Ask;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: AnyResult) => void;
  readonly reject: (reason: Error) => void;
}

let host: TestHost;
let store: Store;
/** Requests that wait for an answer; suggestions are answered at once. */
let waiting: Open[];

beforeEach(() => {
  host = new TestHost();
  store = new Store(host);
  waiting = [];
});

afterEach(() => store.dispose());

const NOTHING = { kind: "nothing" } as const;
const problem = { title: "No", detail: "because", advice: "try" };

/** From now on every request waits until the test answers it. */
function hold(): void {
  host.reply = (request, signal) =>
    request.type === "complete" || request.type === "alternatives"
      ? { kind: "suggestions", items: [] }
      : new Promise((resolve, reject) => waiting.push({ request, signal, resolve, reject }));
}

/** The kernel has carried out the oldest request; the sentence reads like this now. */
async function answer(text?: string, version = host.sentence.value.version + 1): Promise<void> {
  if (text) host.sentence.value = sentence(text, { version, can_undo: true });
  waiting.shift()?.resolve(NOTHING);
  await settled();
}

async function refuse(reason: Error = new Refusal(problem)): Promise<void> {
  waiting.shift()?.reject(reason);
  await settled();
}

const asked = () => waiting.map(({ request }) => request);
const shown = () => store.messages.problem.value;

describe("a change", () => {
  it("names the wording it is about and what it took", async () => {
    store.effort.click();
    for (const key of ["m", "e", "t", "Enter", "Shift"]) store.effort.key({ key });
    await store.changes.replace({ start: 1, stop: 2 }, "met");
    expect(host.last).toEqual({
      type: "replace",
      row: 0,
      version: 1,
      start: 1,
      stop: 2,
      text: "met",
      effort: { keystrokes: 4, mouse: 1 },
    });
    await store.changes.delete({ start: 0, stop: 1 });
    expect(host.last).toMatchObject({ type: "delete", effort: { keystrokes: 0, mouse: 0 } });
  });

  it("is shown at once, and gone when it is done", async () => {
    const done = store.changes.replace({ start: 1, stop: 2 }, "met");
    expect(store.changes.pending.value).toEqual([{ start: 1, stop: 2, text: "met" }]);
    expect(store.busy.value).toBe(true);
    await done;
    expect(store.changes.pending.value).toEqual([]);
  });

  it("is gone when its sentence is there, not when its answer is", () => {
    hold();
    void store.changes.insert(1, "once");
    host.sentence.value = sentence("We once saw him in the park .", { version: 2 });
    expect(store.changes.pending.value).toEqual([]);
  });

  it("takes the focus to where the new word stands now, and says what changed", async () => {
    host.reply = () => {
      host.sentence.value = sentence("Yesterday we met him", {
        version: 2,
        words: [word("Yesterday", { origin: "changed" }), word("we"), word("met", { origin: "yours" })],
      });
      return NOTHING;
    };
    await store.changes.replace({ start: 1, stop: 2 }, "met");
    expect(store.focus.value).toBe(2);
    expect(store.messages.announcement.value).toBe("Yesterday we met 1 word changed for you.");
  });

  it("leaves the focus where the person went meanwhile", async () => {
    hold();
    void store.changes.insert(0, "Then");
    store.focusOn(2);
    await answer("Then we saw him in the park .");
    expect(store.words[store.focus.value]?.text).toBe("him");
  });

  it("that is refused is shown with its reason and what was typed, and the next one clears it", async () => {
    host.reply = () => Promise.reject(new Refusal(problem));
    await store.changes.insert(0, "x");
    expect(shown()).toEqual({ ...problem, typed: "x" });
    expect(store.changes.pending.value).toEqual([]);
    host.reply = () => NOTHING;
    await store.changes.insert(0, "x");
    expect(shown()).toBeNull();
  });

  it("is not asked for when nobody would carry it out", async () => {
    host.connection.value = "lost";
    await store.changes.replace({ start: 0, stop: 1 }, "x");
    host.connection.value = "live";
    host.sentence.value = sentence("We met", { status: "confirmed" });
    await store.changes.delete({ start: 0, stop: 1 });
    await store.changes.confirm();
    expect(host.asked).toEqual([]);
  });

  it("that breaks for a reason nobody thought of says so, and stops nobody", async () => {
    host.reply = () => Promise.reject(new Error("socket"));
    await store.changes.replace({ start: 1, stop: 2 }, "met");
    expect(shown()).toMatchObject({ detail: "Error: socket", typed: "met" });
    host.reply = () => NOTHING;
    await store.changes.confirm();
    expect(host.last).toMatchObject({ type: "confirm" });
  });
});

describe("changes made faster than they are carried out", () => {
  beforeEach(hold);

  it("are carried out one after the other, each where its words are by then", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.replace({ start: 2, stop: 3 }, "Ann");
    void store.changes.insert(6, "yesterday");
    expect(asked()).toMatchObject([{ text: "met", version: 1 }]);
    expect(store.changes.pending.value.map((edit) => edit.text)).toEqual(["met", "Ann", "yesterday"]);
    await answer("Well , we met him in the park .");
    expect(asked()).toMatchObject([{ type: "replace", text: "Ann", version: 2, start: 4, stop: 5 }]);
    await answer("Well , we met Ann in the park .");
    expect(asked()).toMatchObject([{ type: "insert", text: "yesterday", version: 3, at: 8 }]);
    await answer("Well , we met Ann in the park yesterday .");
    expect(store.changes.pending.value).toEqual([]);
    expect(shown()).toBeNull();
  });

  it("of one word follow each other", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "ran into");
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    await answer("There we ran into him .");
    expect(asked()).toMatchObject([{ type: "replace", text: "met", start: 2, stop: 4 }]);
  });

  it("of words that are gone by then go where they stood, or have nothing left to do", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "left");
    void store.changes.replace({ start: 5, stop: 6 }, "garden");
    void store.changes.delete({ start: 3, stop: 4 });
    void store.changes.toggleKeep({ start: 2, stop: 3 });
    await answer("We left .");
    expect(asked()).toMatchObject([{ type: "insert", text: "garden", version: 2, at: 2 }]);
    await answer("We left garden .");
    expect(asked()).toEqual([]);
    expect(shown()).toMatchObject({ title: "Those words are not there any more" });
  });

  it("keep what was typed in sight until it is used", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.replace({ start: 2, stop: 3 }, "Ann");
    await refuse();
    await answer("We saw Ann in the park .");
    expect(shown()).toMatchObject({ typed: "met" });
  });

  it("delete one word after the other", async () => {
    store.focusOn(3);
    for (let turn = 0; turn < 3; turn += 1) void store.changes.delete(store.span.value);
    await answer("We saw him the park .");
    await answer("We saw him park .");
    expect(asked()).toMatchObject([{ type: "delete", start: 3, stop: 4 }]);
    await answer("We saw him .");
    expect(store.words[store.focus.value]?.text).toBe(".");
  });

  it("are asked for again when somebody else changed the sentence first", async () => {
    void store.changes.replace({ start: 2, stop: 3 }, "Ann");
    host.sentence.value = sentence("Then we saw him in the park .", { version: 2 });
    await refuse(new Refusal(problem, true));
    expect(asked()).toMatchObject([{ type: "replace", text: "Ann", version: 2, start: 3, stop: 4 }]);
    await refuse(new Refusal(problem, true));
    expect(shown()).toMatchObject({ typed: "Ann" });
  });

  it("lock the word that was meant", async () => {
    void store.changes.insert(0, "Then");
    void store.changes.toggleKeep({ start: 2, stop: 3 });
    await answer("Then we saw him in the park .");
    expect(asked()).toMatchObject([{ type: "keep", version: 2, start: 3, stop: 4 }]);
  });
});

describe("undo", () => {
  beforeEach(() => {
    host.sentence.value = sentence("We saw him", { can_undo: true });
    hold();
  });

  it("takes back what is on its way before what was done, the newest first", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.replace({ start: 2, stop: 3 }, "her");
    await store.changes.undo();
    expect(store.changes.pending.value.map((edit) => edit.text)).toEqual(["met"]);
    await store.changes.undo();
    expect(store.changes.pending.value).toEqual([]);
    expect(waiting[0]?.signal?.aborted).toBe(true);
    await refuse(new Superseded());
    expect(shown()).toBeNull();
    void store.changes.undo();
    expect(asked()).toEqual([{ type: "undo", row: 0 }]);
  });

  it("keeps the sentence from being confirmed without what is taken back", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.replace({ start: 2, stop: 3 }, "her");
    void store.changes.confirm();
    await store.changes.undo();
    expect(store.changes.confirming.value).toBe(false);
    await answer("We met him");
    expect(asked()).toEqual([]);
  });

  it("undoes a change that could not be stopped any more", async () => {
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    expect(store.escape()).toBe(true);
    await answer("We met him");
    expect(asked()).toEqual([{ type: "undo", row: 0 }]);
  });

  it("of what is confirmed tells how, and asks for nothing", async () => {
    host.sentence.value = sentence("We saw him", {
      status: "confirmed",
      can_undo: true,
      can_unconfirm: true,
    });
    await store.changes.undo();
    expect(store.messages.note.value).toMatchObject({ text: expect.stringContaining("is confirmed") });
    store.messages.note.value = null;
    await store.changes.redo();
    expect(store.messages.note.value).toMatchObject({ text: expect.stringContaining("is confirmed") });
    expect(host.asked).toEqual([]);
  });

  it("does nothing where there is nothing to undo", async () => {
    host.sentence.value = sentence("We saw him");
    await store.changes.undo();
    await store.changes.redo();
    expect(host.asked).toEqual([]);
  });
});

describe("locking", () => {
  it("locks, and releases when all of it is locked", async () => {
    await store.changes.toggleKeep({ start: 0, stop: 2 });
    expect(host.last).toMatchObject({ type: "keep", start: 0, stop: 2 });
    host.sentence.value = sentence("We saw", {
      words: [word("We", { locked: true }), word("saw", { locked: true })],
    });
    await store.changes.toggleKeep({ start: 0, stop: 2 });
    expect(host.last).toMatchObject({ type: "release" });
  });
});

describe("confirming", () => {
  const lesson: Lesson = {
    row: 0,
    outcome: "learned",
    before: -1.92,
    after: -1.61,
    guard: 0,
    seconds: 0.2,
    reason: "learned",
  };

  const confirmed = (lessons: readonly Lesson[], studying: number | null, enabled = true) => {
    host.reply = () => {
      host.learning.value = { enabled, lessons, studying };
      host.sentence.value = sentence("He is", { row: 1 });
      return NOTHING;
    };
    return store.changes.confirm();
  };
  const note = () => store.messages.noteText.value;

  it("of the next sentence waits its turn, though the answer about the one before is still on its way", async () => {
    hold();
    void store.changes.confirm();
    void store.changes.confirm(); // pressed twice: once is meant
    host.sentence.value = sentence("He is", { row: 1, version: 5 });
    void store.changes.confirm();
    await settled();
    expect(asked()).toMatchObject([{ type: "confirm", row: 0 }]);
    await answer();
    expect(asked()).toMatchObject([{ type: "confirm", row: 1, version: 5 }]);
    expect(store.messages.note.value).toMatchObject({ text: "Sentence 1 confirmed.", confirmed: null });
    await answer();
    expect(store.messages.note.value).toMatchObject({ text: "Sentence 2 confirmed.", confirmed: 1 });
  });

  it("is of the wording that was seen, though it waits and somebody else changes the sentence", async () => {
    hold();
    void store.changes.confirm();
    host.sentence.value = sentence("He is", { row: 1, version: 5 });
    void store.changes.confirm();
    host.sentence.value = sentence("He was", { row: 1, version: 6 });
    await answer();
    expect(asked()).toMatchObject([{ type: "confirm", row: 1, version: 5 }]);
  });

  it("is not given up for what went wrong in another sentence", async () => {
    hold();
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    host.sentence.value = sentence("He is", { row: 1 });
    void store.changes.confirm();
    await refuse();
    expect(asked()).toMatchObject([{ type: "confirm", row: 1 }]);
  });

  it("says so at once, and what was learned when that is known", async () => {
    await confirmed([], 0);
    expect(note()).toBe("Sentence 1 confirmed. Learning from it\u2026");
    host.learning.value = { enabled: true, lessons: [lesson], studying: null };
    expect(note()).toBe("Sentence 1 confirmed. Learned: \u22121.92 → \u22121.61.");
    expect(store.messages.announcement.value).toBe(note());
  });

  it("tells why nothing was learned", async () => {
    await confirmed([{ ...lesson, outcome: "rejected", reason: "the guard set would get worse" }], null);
    expect(note()).toContain("Not learned: the guard set would get worse.");
  });

  it("says that learning is off, before and after the kernel has noted it", async () => {
    await confirmed([], null, false);
    expect(note()).toBe("Sentence 1 confirmed. Learning is off.");
    host.learning.value = { enabled: true, lessons: [{ ...lesson, outcome: "off" }], studying: null };
    expect(note()).toBe("Sentence 1 confirmed. Learning is off.");
  });

  it("waits for a change that is on its way, and confirms what that leaves", async () => {
    hold();
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.confirm();
    expect(asked()).toMatchObject([{ type: "replace" }]);
    await answer("We met him in the park .");
    expect(asked()).toEqual([{ type: "confirm", row: 0, version: 2 }]);
  });

  it("is not done, nor the sentence left, if that change is refused", async () => {
    hold();
    void store.changes.replace({ start: 1, stop: 2 }, "met");
    void store.changes.confirm();
    store.changes.go(2);
    await refuse();
    expect(asked()).toEqual([]);
    expect(shown()).toMatchObject({ typed: "met" });
    expect(store.editable.value).toBe(true);
  });

  it("is done once, however often it is asked for", async () => {
    hold();
    void store.changes.confirm();
    void store.changes.confirm();
    void store.changes.delete({ start: 0, stop: 1 });
    expect(asked()).toMatchObject([{ type: "confirm" }]);
    await answer();
    expect(asked()).toEqual([]);
  });
});

it("goes to the last sentence that was asked for, after the change that is on its way", async () => {
  hold();
  void store.changes.replace({ start: 1, stop: 2 }, "met");
  store.changes.go(store.changes.destination + 1);
  store.changes.go(store.changes.destination + 1);
  await answer("We met him in the park .");
  expect(asked()).toEqual([{ type: "go", row: 2 }]);
});

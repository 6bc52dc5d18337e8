import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Refusal } from "../src/host";
import { Store } from "../src/store";
import { sentence, settled, TestHost } from "./desk";

let host: TestHost;
let store: Store;

beforeEach(() => {
  host = new TestHost();
  store = new Store(host);
});

afterEach(() => store.dispose());

const problem = { title: "No", detail: "because", advice: "try" };

it("shows a problem that belongs to no request", () => {
  host.trouble.value = problem;
  expect(store.messages.problem.value).toEqual(problem);
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
    store.messages.problem.value = problem;
    host.sentence.value = sentence("He is", { row: 1 });
    expect(store.focus.value).toBe(0);
    expect(store.editing.editor.value).toBeNull();
    expect(store.messages.problem.value).toBeNull();
  });

  it("begins with the first word of a sentence that was not there yet", () => {
    host.sentence.value = sentence("", { row: 1, words: [], status: "waiting", version: 0 });
    host.sentence.value = sentence("He is", { row: 1 });
    expect(store.focus.value).toBe(0);
  });

  it("shows what was typed until it is used, also where the other sentence is yet to be translated", () => {
    store.editing.open({ start: 1, stop: 2 }, "met");
    host.sentence.value = sentence("", { row: 1, words: [], status: "waiting", version: 0 });
    host.sentence.value = sentence("He is", { row: 1 });
    expect(store.messages.problem.value).toMatchObject({ typed: "met" });
    host.sentence.value = sentence("She was", { row: 2 });
    expect(store.messages.problem.value).toBeNull();
  });

  it("keeps its place in a new wording of the same sentence, as far as there is one", () => {
    store.focusOn(6);
    host.sentence.value = sentence("We met", { version: 2 });
    expect(store.focus.value).toBe(1);
  });

  it("keeps its place while the sentence is translated anew", () => {
    store.focusOn(5);
    host.sentence.value = sentence("", { words: [], status: "waiting", version: 0 });
    host.sentence.value = sentence("Then we saw him in the park .", { version: 2 });
    expect(store.words[store.focus.value]?.text).toBe("park");
  });

  it("goes to sentences that exist", async () => {
    store.changes.go(7);
    store.changes.go(-1);
    store.changes.go(0);
    expect(host.asked).toEqual([]);
    store.changes.go(2);
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

it("clears a problem when the next thing is done, not when it is begun", async () => {
  host.reply = () => Promise.reject(new Refusal(problem));
  await store.configure({ beam: 99 });
  expect(store.messages.problem.value).toEqual(problem);
  host.reply = () => ({ kind: "nothing" });
  const done = store.configure({ beam: 4 });
  expect(store.messages.problem.value).toEqual(problem);
  await done;
  expect(store.messages.problem.value).toBeNull();
});

it("lets the host go", () => {
  store.dispose();
  expect(host.disposed).toBe(true);
});

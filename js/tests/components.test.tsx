import { render } from "preact";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { App } from "../src/components/App";
import { Store } from "../src/store";
import { entry, sentence, settled, TestHost, word } from "./desk";

let host: TestHost;
let store: Store;
let root: HTMLElement;

function show(made: TestHost = new TestHost()): void {
  host = made;
  store = new Store(host);
  render(<App store={store} />, root);
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.replaceChildren(root);
});

afterEach(() => {
  render(null, root);
  store.dispose();
});

const all = (selector: string) => [...root.querySelectorAll<HTMLElement>(selector)];
const one = (selector: string) => root.querySelector<HTMLElement>(selector);
const texts = (selector: string) => all(selector).map((element) => element.textContent?.trim());

async function press(key: string, more: KeyboardEventInit = {}): Promise<KeyboardEvent> {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  (document.activeElement ?? document.body).dispatchEvent(event);
  await settled();
  return event;
}

async function click(element: HTMLElement | null | undefined): Promise<void> {
  for (const type of ["pointerdown", "pointerup"])
    element?.dispatchEvent(new MouseEvent(type, { bubbles: true }));
  element?.click();
  await settled();
}

describe("the words", () => {
  it("are one tab stop, walked over with the arrows", async () => {
    show();
    expect(all("[role=option]").filter((item) => item.tabIndex === 0)).toHaveLength(1);
    one(".camit-word")?.focus();
    await press("ArrowRight");
    await press("ArrowRight");
    expect(document.activeElement?.textContent).toBe("him");
    await press("End");
    expect(document.activeElement?.textContent).toBe(".");
    await press("Home");
    expect(document.activeElement?.textContent).toBe("We");
  });

  it("say what they are without colour", () => {
    show(
      new TestHost(
        sentence("", {
          words: [
            word("We", { origin: "kept" }),
            word("met", { origin: "yours", locked: true }),
            word("him", { origin: "changed" }),
          ],
        }),
      ),
    );
    expect(all(".camit-word").map((item) => item.getAttribute("aria-label"))).toEqual([
      "We, kept",
      "met, yours",
      "him, changed for you",
    ]);
  });

  it("carry a badge that names the memory entry and its sentence", async () => {
    show(new TestHost(sentence("", { words: [word("met", { memory: 4, theta: 0.9 })] })));
    host.memory.value = { enabled: true, entries: [entry(4, "met", { row: 2 })] };
    await settled();
    expect(one(".camit-badge")?.title).toContain("“met”, sentence 3");
    expect(one(".camit-badge")?.textContent).toBe("3");
  });

  it("light up the source they read, and the other way round", async () => {
    show();
    one(".camit-word")?.dispatchEvent(new MouseEvent("pointermove", { bubbles: true }));
    await settled();
    expect(all(".camit-sourceword").map((item) => item.style.getPropertyValue("--lit"))).toEqual([
      "0.1",
      "0.8",
    ]);
    one(".camit-word")?.dispatchEvent(new MouseEvent("pointerleave"));
    all(".camit-sourceword")[1]?.dispatchEvent(new MouseEvent("pointermove", { bubbles: true }));
    await settled();
    expect(one(".camit-word")?.style.getPropertyValue("--lit")).toBe("0.8");
  });

  it("are text, whatever they contain", () => {
    const evil = '<img src=x onerror="alert(1)">';
    show(
      new TestHost(sentence("", { words: [word(evil)], source: [{ text: "</script><b>", space: false }] })),
    );
    expect(one(".camit-word")?.textContent).toBe(evil);
    expect(one(".camit-source")?.textContent).toBe("</script><b>");
    expect(one("img, .camit-source b")).toBeNull();
  });
});

describe("editing", () => {
  beforeEach(() => show());

  it("opens on a click, with the word selected, and goes back to the word on Escape", async () => {
    await click(all(".camit-word")[1]);
    const input = one(".camit-editor input") as HTMLInputElement;
    expect(input.value).toBe("saw");
    expect(document.activeElement).toBe(input);
    await press("Escape");
    expect(one(".camit-editor")).toBeNull();
    expect(document.activeElement?.textContent).toBe("saw");
  });

  it("replaces by just typing", async () => {
    all(".camit-word")[1]?.focus();
    await press("m");
    const input = one(".camit-editor input") as HTMLInputElement;
    expect(input.value).toBe("m");
    input.value = "met";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await press("Enter");
    expect(host.asked.find((request) => request.type === "replace")).toMatchObject({ start: 1, text: "met" });
  });

  it("shows the new word at once in the same element, which keeps the keyboard", async () => {
    host.reply = () => new Promise(() => {});
    const element = all(".camit-word")[1];
    element?.focus();
    void store.replace({ start: 1, stop: 3 }, "met her");
    await settled();
    expect(element?.textContent).toBe("met her");
    expect(element?.dataset.pending).toBe("coming");
    expect(all(".camit-word")[2]?.dataset.pending).toBe("gone");
    expect(document.activeElement).toBe(element);
  });

  it("inserts at a gap", async () => {
    await click(one("[data-gap='2']"));
    expect(one(".camit-editor")?.getAttribute("aria-label")).toBe("Insert a word");
  });

  it("deletes, rewrites and locks by key", async () => {
    all(".camit-word")[3]?.focus();
    await press("Delete");
    expect(host.last).toMatchObject({ type: "delete", start: 3, stop: 4 });
    await press("ArrowRight", { shiftKey: true });
    await press("Delete", { ctrlKey: true });
    expect(host.last).toMatchObject({ type: "blank", start: 3, stop: 5 });
    await press(" ");
    expect(host.last).toMatchObject({ type: "keep" });
  });

  it("offers to write a phrase again, and only a phrase", async () => {
    await click(all(".camit-word")[1]);
    expect(texts(".camit-operation")).not.toContain("redo this part");
    store.select(1, 3);
    store.editing.open(store.span.value);
    await settled();
    expect(texts(".camit-operation")).toContain("redo this part");
  });
});

describe("keys", () => {
  beforeEach(() => show());

  it("of ours do not reach the notebook, Ctrl+S does", async () => {
    const reached: string[] = [];
    const listen = (event: KeyboardEvent) => reached.push(event.key);
    document.addEventListener("keydown", listen);
    one(".camit-word")?.focus();
    await press("d", { altKey: false });
    await press("Escape");
    await press("Enter", { ctrlKey: true });
    await press("s", { ctrlKey: true });
    document.removeEventListener("keydown", listen);
    expect(reached).toEqual(["s"]);
  });

  it("are marked as ours before a notebook that listens early looks", async () => {
    const seen: Record<string, boolean> = {};
    const early = (event: KeyboardEvent) => {
      seen[event.key] = (event.target as Element).hasAttribute("data-lm-suppress-shortcuts");
    };
    document.addEventListener("keydown", early, true);
    one(".camit-word")?.focus();
    await press("s", { ctrlKey: true });
    await press("z", { ctrlKey: true });
    one(".camit-row")?.focus();
    await press("d");
    document.removeEventListener("keydown", early, true);
    expect(seen).toEqual({ s: false, z: true, d: true });
  });

  it("are marked only where the keyboard is", async () => {
    const marked = () => all("[data-lm-suppress-shortcuts]");
    one(".camit-row")?.focus();
    await press("d");
    expect(marked()).toEqual([one(".camit-row")]);
    one(".camit-confirm")?.focus();
    expect(marked()).toEqual([]);
    await press("d");
    await press("s", { ctrlKey: true });
    expect(marked()).toEqual([]);
  });

  it("open and close the help", async () => {
    one(".camit-word")?.focus();
    await press("?");
    expect(one("[role=dialog][aria-label='Keys and help']")).not.toBeNull();
    await press("Escape");
    expect(one("[role=dialog]")).toBeNull();
  });
});

describe("what is said", () => {
  it("is an alert where something went wrong, with what to do", async () => {
    show();
    store.fail({ title: "Too long", detail: "It has 900 pieces.", advice: "Split it." });
    await settled();
    expect(one("[role=alert]")?.textContent).toContain("Too long. It has 900 pieces. Split it.");
  });

  it("is a way to try again for a sentence that failed", async () => {
    const failed = { title: "Too long", detail: "", advice: "" };
    show(new TestHost(sentence("", { words: [], status: "failed", problem: failed })));
    await click(all(".camit-message button").find((item) => item.textContent === "Try again"));
    expect(host.last).toEqual({ type: "go", row: 0 });
  });

  it("is that the kernel is gone, and nothing can be changed then", async () => {
    show();
    host.connection.value = "lost";
    await settled();
    expect(one(".camit-connection")?.textContent).toContain("run the cell again");
    await click(all(".camit-word")[1]);
    expect(one(".camit-editor")).toBeNull();
    expect(one(".camit-confirm")?.getAttribute("aria-disabled")).toBe("true");
  });
});

describe("the views", () => {
  const lesson = {
    row: 0,
    accepted: true,
    before: -1.9,
    after: -1.6,
    guard: 0.001,
    seconds: 0.2,
    reason: "",
  };

  it("show the memory: entries, where they came from, what they did", async () => {
    show();
    host.memory.value = { enabled: true, entries: [entry(1, "met", { copies: 3, pinned: true })] };
    host.looks.value = { row: 0, version: 1, cells: [{ word: 1, entry: 1, weight: 90 }] };
    await settled();
    expect(one(".camit-entry")?.textContent).toBe("met · sentence 1 · copied 3× · pinned");
    await click(one(".camit-entry"));
    expect(one(".camit-provenance")?.textContent).toContain("We met him");
    await click(one("[aria-label='Forget met']"));
    expect(host.last).toEqual({ type: "forget", entry: 1 });
    await click(one("[aria-label='Unpin met']"));
    expect(host.last).toEqual({ type: "pin", entry: 1, pinned: false });
  });

  it("never show looks that belong to another wording", async () => {
    show();
    host.memory.value = { enabled: true, entries: [entry(1, "met")] };
    host.looks.value = { row: 0, version: 7, cells: [{ word: 1, entry: 1, weight: 90 }] };
    await settled();
    expect(all("li:nth-child(2) .camit-heat-strip i")).toHaveLength(0);
  });

  it("stay small with a hundred entries", async () => {
    show();
    const entries = Array.from({ length: 100 }, (_, id) => entry(id, `word${id}`));
    host.memory.value = { enabled: true, entries };
    await settled();
    expect(all(".camit-entry")).toHaveLength(12);
  });

  it("show the lessons", async () => {
    show();
    host.learning.value = {
      enabled: true,
      lessons: [lesson, { ...lesson, accepted: false }],
      studying: null,
    };
    await click(one("[id$=tab-learning]"));
    expect(one(".camit-lead")?.textContent).toBe("Learned from 1 of 2 lessons.");
    expect(all(".camit-curve [data-accepted=false]")).toHaveLength(1);
  });

  it("show the steps of the last revision", async () => {
    const words = [{ text: "We", space: false, origin: "kept" as const }];
    show(
      new TestHost(
        sentence("We", { stages: [{ name: "forward", caption: "Forward: to the right.", words }] }),
      ),
    );
    await click(one("[id$=tab-steps]"));
    expect(one(".camit-steps")?.textContent).toBe("ForwardWeTo the right.");
  });
});

import { options, render } from "preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "../src/components/App";
import { Refusal } from "../src/host";
import { Store } from "../src/store";
import { entry, sentence, settled, TestHost, word } from "./desk";

// Effects at once, not after a frame: by then the page of the last test may be gone.
options.requestAnimationFrame = queueMicrotask;

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
  it("stand beside a rail that is one tab stop too", () => {
    show();
    const stops = all(".camit-row").filter((row) => row.tabIndex === 0);
    expect(stops).toEqual(all(".camit-row[aria-current]"));
    expect(stops).toHaveLength(1);
  });

  it("stand beside a rail whose rows are walked along", async () => {
    show();
    const at = () => all(".camit-row").indexOf(document.activeElement as HTMLElement);
    one(".camit-row")?.focus();
    const reached: number[] = [];
    for (const key of [
      "ArrowDown",
      "ArrowRight",
      "ArrowDown",
      "ArrowUp",
      "End",
      "ArrowLeft",
      "Home",
      "ArrowUp",
    ]) {
      expect((await press(key)).defaultPrevented, key).toBe(true);
      reached.push(at());
    }
    expect(reached).toEqual([1, 2, 2, 1, 2, 1, 0, 0]);
    expect(host.asked).toEqual([]);
  });

  it("keep together with their marks, unless they are too long for a line", () => {
    const words = [word("met", { memory: 4 }), word("Donaudampfschifffahrt"), word("in spite of")];
    show(new TestHost(sentence("", { words, source: [{ text: "我们", space: false }] })));
    expect(all(".camit-word").map((item) => "long" in item.dataset)).toEqual([false, true, true]);
    expect("long" in (one(".camit-sourceword")?.dataset ?? {})).toBe(false);
  });

  it("are one tab stop, walked over with the arrows", async () => {
    show();
    expect(all(".camit-target [role=option]").filter((item) => item.tabIndex === 0)).toHaveLength(1);
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

  it("carry dots and one number where they are recalled from a confirmed sentence", () => {
    const like = { like: 1, recalled: 0.8 };
    const words = [word("We", like), word("met", like), word("him"), word("again", like)];
    show(new TestHost(sentence("", { words })));
    expect(all(".camit-word").map((item) => "recalled" in item.dataset)).toEqual([true, true, false, true]);
    expect(all(".camit-badge").map((item) => item.textContent)).toEqual(["≈2", "≈2"]);
    expect(one(".camit-badge")?.title).toContain("sentence 2");
    expect(one(".camit-badge")?.title).toContain("80 %");
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

  it("light up for a source word that the keyboard is on: one tab stop, walked over with the arrows", async () => {
    show();
    const stops = () => all(".camit-source [role=option]").filter((item) => item.tabIndex === 0);
    expect(stops().map((item) => item.textContent)).toEqual(["我们"]);
    stops()[0]?.focus();
    await press("ArrowRight");
    expect(document.activeElement?.textContent).toBe("看到");
    expect(stops()).toEqual([document.activeElement]);
    expect(one(".camit-word")?.style.getPropertyValue("--lit")).toBe("0.8");
    expect(one(".camit-explanation")?.textContent).toContain("Read while writing “We”");
    expect(document.activeElement?.getAttribute("aria-label")).toContain("看到, read for “We”");
    await press("ArrowRight");
    expect(document.activeElement?.textContent).toBe("看到");
    await press("Home");
    expect(document.activeElement?.textContent).toBe("我们");
    for (const key of ["x", "Delete", " ", "Enter"]) await press(key);
    expect(host.asked).toEqual([]);
    expect(one(".camit-editor")).toBeNull();
    one(".camit-word")?.focus();
    await settled();
    expect(one(".camit-word")?.style.getPropertyValue("--lit")).toBe("0");
  });

  it("say their language, and run in its direction", () => {
    show();
    for (const [line, language] of [
      [".camit-source", "zh"],
      [".camit-target", "en"],
    ] as const) {
      expect(one(line)?.lang).toBe(language);
      expect(one(line)?.dir).toBe("auto");
    }
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

  it("takes the whole sentence in hand, to be written over", async () => {
    all(".camit-word")[3]?.focus();
    await press("a", { ctrlKey: true });
    expect(all(".camit-word[aria-selected=true]")).toHaveLength(7);
    await press("H");
    expect(store.editing.editor.value).toMatchObject({ start: 0, stop: 7, text: "H" });
  });

  it("opens for a character that takes AltGr, and for one that takes several keys", async () => {
    all(".camit-word")[1]?.focus();
    const typed = await press("@", { ctrlKey: true, altKey: true });
    expect((one(".camit-editor input") as HTMLInputElement).value).toBe("@");
    expect(typed.defaultPrevented).toBe(true);
    await press("Escape");
    for (const key of ["Dead", "Process"]) {
      const first = await press(key);
      const input = one(".camit-editor input") as HTMLInputElement;
      expect(document.activeElement).toBe(input);
      // All of it selected: what is composed takes its place.
      expect([input.value, input.selectionStart, input.selectionEnd]).toEqual(["saw", 0, 3]);
      expect(first.defaultPrevented).toBe(false);
      await press("Escape");
    }
  });

  it("writes a question mark while a word is edited, and shows the help otherwise", async () => {
    await click(all(".camit-word")[1]);
    expect((await press("?")).defaultPrevented).toBe(false);
    expect(one(".camit-help")).toBeNull();
    await press("Escape");
    await press("?");
    expect(one(".camit-help")?.textContent).toContain("while you edit a word, a question mark");
  });

  it("shows the new word at once in the same element, which keeps the keyboard", async () => {
    host.reply = () => new Promise(() => {});
    const element = all(".camit-word")[1];
    element?.focus();
    void store.changes.replace({ start: 1, stop: 3 }, "met her");
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
    expect(host.last).toMatchObject({ type: "blank", start: 4, stop: 6 });
    await press(" ");
    expect(host.last).toMatchObject({ type: "keep" });
  });

  it("offers for the whole sentence neither another word nor nothing in its place", async () => {
    store.select(0, 6);
    store.editing.open(store.span.value);
    await settled();
    expect(host.asked).toEqual([]);
    expect(texts(".camit-operation")).not.toContain("rewrite");
    expect(texts(".camit-operation")).not.toContain("delete");
    expect(one(".camit-suggestions")?.textContent).toContain("The whole sentence");
    for (const text of ["He", ""]) store.editing.type(text);
    await settled();
    expect(texts(".camit-operation")[0]).toBe("↵ close");
    await press("Enter");
    expect(host.asked).toEqual([]);
    expect(one(".camit-editor")).toBeNull();
  });

  it("offers to write a phrase again, and only a phrase", async () => {
    await click(all(".camit-word")[1]);
    expect(texts(".camit-operation")).not.toContain("rewrite");
    store.select(1, 3);
    store.editing.open(store.span.value);
    await settled();
    expect(texts(".camit-operation")).toContain("rewrite");
  });
});

describe("a click", () => {
  const down = (element: Element | null) => {
    const event = new MouseEvent("mousedown", { bubbles: true, cancelable: true });
    element?.dispatchEvent(event);
    return event;
  };

  it("on any blank spot leaves the keyboard in the widget", () => {
    show();
    for (const spot of [".camit-header", ".camit-rail", ".camit-message", ".camit-actions", ".camit-panel"])
      expect(one(spot)?.closest("[tabindex]"), spot).toBe(one(".camit"));
    one(".camit")?.focus();
    expect(document.activeElement).toBe(one(".camit"));
  });

  it("beside the controls of what is open in front changes nothing", async () => {
    show();
    await click(all(".camit-word")[1]);
    for (const spot of [".camit-editor", ".camit-operations", ".camit-suggestions", ".camit-suggestions p"])
      expect(down(one(spot)).defaultPrevented, spot).toBe(true);
    for (const control of [".camit-editor input", ".camit-operation"])
      expect(down(one(control)).defaultPrevented, control).toBe(false);
    expect(down(one(".camit-header")).defaultPrevented).toBe(false);
    for (const panel of ["settings", "help"] as const) {
      store.panel.value = panel;
      await settled();
      expect(down(one(`.camit-${panel} h3`)).defaultPrevented, panel).toBe(true);
      expect(down(one(`.camit-${panel} button`)).defaultPrevented, panel).toBe(false);
    }
  });

  it("that gives the keyboard to the editor itself does not end the editing", async () => {
    show();
    await click(all(".camit-word")[1]);
    store.editing.type("met");
    one(".camit-editor")?.focus();
    expect(document.activeElement).toBe(one(".camit-editor"));
    expect(store.editing.editor.value).toMatchObject({ typed: "met" });
  });
});

it("keeps the editor beside its word when the widget grows", async () => {
  const seen: Element[] = [];
  let grown = () => {};
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(heard: () => void) {
        grown = heard;
      }
      observe = (element: Element) => seen.push(element);
      disconnect() {}
    },
  );
  show();
  await click(all(".camit-word")[1]);
  expect(seen).toContain(one(".camit"));
  const box = { left: 40, top: 300, bottom: 320, right: 80, width: 40, height: 20 } as DOMRect;
  const [anchor, editor] = [all(".camit-word")[1] as HTMLElement, one(".camit-editor") as HTMLElement];
  anchor.getBoundingClientRect = () => box;
  grown();
  expect(editor.style.top).toBe("330px");
  vi.unstubAllGlobals();
});

describe("undoing in an input", () => {
  it("is the input's own affair, not the notebook's", async () => {
    show();
    const heard: string[] = [];
    const listen = (event: InputEvent) => heard.push(event.inputType);
    document.addEventListener("beforeinput", listen, true);
    for (const inputType of ["historyUndo", "historyRedo", "insertText"])
      one(".camit-remember input")?.dispatchEvent(
        new InputEvent("beforeinput", { inputType, bubbles: true }),
      );
    document.removeEventListener("beforeinput", listen, true);
    expect(heard).toEqual(["insertText"]);
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

  it("never run the notebook's cell, and in an input never undo its text", async () => {
    const marked = () => document.activeElement?.hasAttribute("data-lm-suppress-shortcuts");
    for (const place of [".camit-word", ".camit-row", ".camit-confirm"]) {
      one(place)?.focus();
      await press("Enter", { altKey: true });
      expect(marked(), place).toBe(true);
    }
    await click(all(".camit-word")[1]);
    expect(document.activeElement).toBe(one(".camit-input"));
    for (const key of ["z", "Z", "y", "a"]) {
      await press(key, { ctrlKey: true });
      expect(marked(), key).toBe(true);
    }
    await press("s", { ctrlKey: true });
    expect(marked()).toBe(false);
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

  it("and a click on Confirm takes what is typed along", async () => {
    await click(all(".camit-word")[1]);
    store.editing.type("met");
    await click(one(".camit-confirm"));
    const done = host.asked.filter(({ type }) => type === "replace" || type === "confirm");
    expect(done).toMatchObject([{ type: "replace", text: "met" }, { type: "confirm" }]);
  });

  it("confirm what is typed in the editor, all of it", async () => {
    await click(all(".camit-word")[1]);
    store.editing.type("met");
    await press("Enter", { ctrlKey: true });
    const done = host.asked.filter(({ type }) => type === "replace" || type === "confirm");
    expect(done).toMatchObject([{ type: "replace", text: "met" }, { type: "confirm" }]);
  });

  it("that are held down confirm and delete once", async () => {
    one(".camit-word")?.focus();
    await press("Delete", { repeat: true });
    const held = await press("Enter", { ctrlKey: true, repeat: true });
    expect(host.asked).toEqual([]);
    expect(held.defaultPrevented).toBe(true);
  });
});

describe("what is open in front", () => {
  beforeEach(() => show());
  const focused = () => document.activeElement;
  const more = () => one("[aria-label='Copy, export, settings']");
  const help = () => one("[role=dialog][aria-label='Keys and help']");

  it("keeps the keyboard, and everything behind it as it is", async () => {
    one(".camit-word")?.focus();
    await press("?");
    expect(help()?.contains(focused())).toBe(true);
    expect((await press("Tab")).defaultPrevented).toBe(true);
    expect(help()?.contains(focused())).toBe(true);
    for (const key of ["PageDown", "Delete", "x"]) await press(key);
    await press("Enter", { ctrlKey: true });
    await press("z", { ctrlKey: true });
    expect(host.asked).toEqual([]);
    await press("Escape");
    expect(help()).toBeNull();
    expect(focused()).toBe(one(".camit-word"));
  });

  it("goes round in the settings, and gives the keyboard back", async () => {
    more()?.focus();
    await click(more());
    await click(all("[role=menuitem]").find((item) => item.textContent === "Settings…"));
    const stops = all(".camit-settings :is(input, select, button)");
    expect(focused()).toBe(stops[0]);
    await press("Tab", { shiftKey: true });
    expect(focused()).toBe(stops.at(-1));
    await press("Tab");
    expect(focused()).toBe(stops[0]);
    await press("Escape");
    expect(one(".camit-settings")).toBeNull();
    expect(focused()).toBe(more());
  });

  it("closes with a click elsewhere, and with Tab out of a menu", async () => {
    more()?.focus();
    await click(more());
    expect(focused()?.getAttribute("role")).toBe("menuitem");
    await press("Tab");
    expect(one("[role=menu]")).toBeNull();
    expect(focused()).toBe(more());
    await click(more());
    await click(one(".camit-source"));
    expect(one("[role=menu]")).toBeNull();
    expect(focused()).toBe(more());
  });

  it("closes with the button that opens it, however it was opened", async () => {
    one(".camit-word")?.focus();
    await press("?");
    await click(one("[aria-haspopup=dialog]"));
    expect(help()).toBeNull();
  });
});

describe("the settings", () => {
  const set = async (selector: string, value: string) => {
    const field = one(`.camit-settings ${selector}`) as HTMLInputElement;
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    await settled();
    return field.value;
  };

  beforeEach(async () => {
    show();
    store.panel.value = "settings";
    await settled();
  });

  it("show what is so, and say what is allowed", async () => {
    expect(one("[type=number]")?.getAttribute("max")).toBe("64");
    for (const odd of ["0", "99", "-3", "", "2.5"]) {
      expect(await set("[type=number]", odd)).toBe("4");
      expect(one(".camit-settings [role=alert]")?.textContent).toBe("whole numbers from 1 to 64");
    }
    expect(host.asked).toEqual([]);
    host.reply = () => {
      host.settings.value = { ...host.settings.value, beam: 8 };
      return { kind: "nothing" };
    };
    expect(await set("[type=number]", "8")).toBe("8");
    expect(one(".camit-settings [role=alert]")).toBeNull();
  });

  it("name the ways of revising in words", () => {
    const options = all(".camit-settings option") as HTMLOptionElement[];
    expect(options.map(({ value, text }) => [value, text])).toEqual([
      ["replace-only", "only the word itself"],
      ["bidirectional", "both ways"],
    ]);
  });

  it("go back to what is so when they are refused", async () => {
    host.reply = () => Promise.reject(new Refusal({ title: "No", detail: "", advice: "" }));
    expect(await set("select", "replace-only")).toBe("bidirectional");
    expect(await set("[type=number]", "8")).toBe("4");
  });
});

describe("what is said", () => {
  it("offers what was typed once more, where it could not be put", async () => {
    show();
    store.focusOn(2);
    store.messages.fail({ title: "No", detail: "Gone.", advice: "", typed: "her" });
    await settled();
    expect(one("[role=alert]")?.textContent).toContain("You typed “her”.");
    await click(all("[role=alert] button").find((item) => item.textContent === "Edit again"));
    expect(store.editing.editor.value).toMatchObject({ start: 2, text: "her" });
    expect(one("[role=alert]")).toBeNull();
  });

  it("begins with a capital letter", async () => {
    show();
    one(".camit-word")?.focus();
    await settled();
    expect(one(".camit-explanation")?.textContent).toMatch(/^As first translated · probability/);
  });

  it("is that the document is finished, once it is; there is no key for what is done", async () => {
    show(new TestHost(sentence("We met", { status: "confirmed", can_unconfirm: true }), 2));
    expect(one(".camit-explanation")?.textContent).toBe("Confirmed.");
    expect(one(".camit-key")?.dataset).toHaveProperty("idle");
    const rows = host.overview.value.rows.map((row) => ({ ...row, status: "confirmed" as const }));
    host.overview.value = { ...host.overview.value, rows };
    await settled();
    expect(one(".camit-explanation")?.textContent).toBe("All sentences are confirmed.");
    expect(texts(".camit-message button")).toContain("Take back");
    host.sentence.value = sentence("We met", { version: 2 });
    await settled();
    expect(one(".camit-key")?.dataset).not.toHaveProperty("idle");
    await store.changes.confirm();
    await settled();
    expect(one(".camit-note")?.textContent).toContain("All sentences are confirmed.");
  });

  it("is an alert where something went wrong, with what to do", async () => {
    show();
    store.messages.fail({ title: "Too long", detail: "It has 900 pieces.", advice: "Split it." });
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

it("says of a saved view that the cell is to be run, and keeps the text readable", async () => {
  show();
  host.connection.value = "saved";
  await settled();
  expect(one(".camit-connection")?.textContent).toContain("Run the cell to go on working");
  expect(texts(".camit-word")).toContain("park");
  await click(all(".camit-word")[1]);
  expect(one(".camit-editor")).toBeNull();
});

describe("the views", () => {
  const lesson = {
    row: 0,
    outcome: "learned" as const,
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

  it("say what was done to the memory, and take it back", async () => {
    show();
    const met = entry(1, "met", { copies: 3, pinned: true });
    host.memory.value = { enabled: true, entries: [met] };
    await settled();
    const undo = () => all(".camit-done button")[0];
    const told = () => [one(".camit-done .camit-said")?.textContent, one("[role=status]")?.textContent];
    await click(one("[aria-label='Forget met']"));
    expect(told()).toEqual(["Forgot “met”.", "Forgot “met”."]);
    undo()?.focus();
    await click(undo());
    expect(host.last).toEqual({ type: "recall", entry: 1 });
    expect(told()).toEqual(["“met” is back as it was.", "“met” is back as it was."]);
    expect(undo()).toBeUndefined();
    expect(document.activeElement).toBe(one(".camit-remember input"));
    await click(one("[aria-label='Unpin met']"));
    expect(told()[0]).toBe("Unpinned “met”.");
    one("[aria-label='Unpin met']")?.focus();
    await press("z", { ctrlKey: true });
    expect(host.last).toEqual({ type: "pin", entry: 1, pinned: true });
    expect(told()[0]).toBe("Pinned “met”.");
  });

  it("take back what was done to the memory, the last of it first", async () => {
    show();
    const [met, seen] = [entry(1, "met"), entry(2, "seen")];
    host.memory.value = { enabled: true, entries: [met, seen] };
    await settled();
    for (const text of ["met", "seen"]) await click(one(`[aria-label='Forget ${text}']`));
    const undo = () => all(".camit-done button")[0];
    await click(undo());
    await click(undo());
    expect(host.asked.slice(2)).toEqual([
      { type: "recall", entry: 2 },
      { type: "recall", entry: 1 },
    ]);
    expect(undo()).toBeUndefined();
    one("[aria-label='Forget met']")?.focus();
    await press("z", { ctrlKey: true });
    expect(host.asked).toHaveLength(4);
  });

  it("say that a term is remembered, once", async () => {
    show();
    const add = async () => {
      for (const [index, text] of ["蓝鲸", "blue whale"].entries()) {
        const input = all(".camit-remember input")[index] as HTMLInputElement;
        input.value = text;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
      await settled();
      await click(one(".camit-remember button"));
      return one(".camit-done")?.textContent;
    };
    host.reply = () => ({ kind: "remembered", entry: 7, new: true });
    expect(await add()).toBe("Remembered “blue whale”.Undo");
    expect((one(".camit-remember input") as HTMLInputElement).value).toBe("");
    host.reply = () => ({ kind: "remembered", entry: 7, new: false });
    expect(await add()).toBe("“blue whale” is remembered for that already.");
    expect((one(".camit-remember input") as HTMLInputElement).value).toBe("蓝鲸");
  });

  it("keep the keyboard when an entry is forgotten: on the next one, then in the form", async () => {
    show();
    const entries = ["one", "two", "three"].map((text, id) => entry(id, text));
    host.memory.value = { enabled: true, entries };
    host.reply = (request) => {
      const gone = request.type === "forget" ? request.entry : -1;
      const left = host.memory.value.entries.filter((item) => item.id !== gone);
      host.memory.value = { enabled: true, entries: left };
      return { kind: "nothing" };
    };
    await settled();
    const forget = async () => {
      const button = document.activeElement as HTMLElement;
      await click(button);
      return document.activeElement?.getAttribute("aria-label");
    };
    one("[aria-label='Forget two']")?.focus();
    expect(await forget()).toBe("Forget one");
    expect(await forget()).toBe("Forget three");
    expect(await forget()).toBe("Source to remember");
    const undone = await press("z", { ctrlKey: true });
    expect(host.last).toEqual({ type: "recall", entry: 2 });
    expect(undone.defaultPrevented).toBe(true);
  });

  it("say that the memory is off, also where it holds something", async () => {
    show();
    host.memory.value = { enabled: false, entries: [entry(1, "met")] };
    await settled();
    expect(one(".camit-memory")?.textContent).toContain("The memory is switched off");
    expect(all(".camit-entry")).toHaveLength(1);
    host.memory.value = { ...host.memory.value, enabled: true };
    await settled();
    expect(one(".camit-memory")?.textContent).not.toContain("switched off");
  });

  it("name a long entry shortly where something was done to it", async () => {
    show();
    const long = "a very long correction that somebody made in some sentence";
    host.memory.value = { enabled: true, entries: [entry(1, long)] };
    await settled();
    await click(one("[aria-label^='Forget ']"));
    expect(one(".camit-done .camit-said")?.textContent).toBe(
      "Forgot “a very long correction that somebody ma…”.",
    );
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
      lessons: [lesson, { ...lesson, outcome: "rejected" }],
      studying: null,
    };
    await click(one("[id$=tab-learning]"));
    expect(one(".camit-lead")?.textContent).toBe("Learned from 1 of 2 lessons.");
    expect(all(".camit-curve [data-outcome=rejected]")).toHaveLength(1);
  });

  it("say what else came of a lesson", async () => {
    show();
    const fading = { ...lesson, reason: "all that was learned fades by 5 %" };
    host.learning.value = { enabled: true, studying: null, lessons: [fading] };
    await click(one("[id$=tab-learning]"));
    expect(one(".camit-lesson")?.textContent).toContain("learned: all that was learned fades by 5 %");
  });

  it("say that learning was off instead of drawing a rejected lesson", async () => {
    show();
    host.learning.value = { enabled: false, lessons: [{ ...lesson, outcome: "off" }], studying: null };
    await click(one("[id$=tab-learning]"));
    expect(one(".camit-lead")?.textContent).toBe(
      "No lesson yet. Learning is switched off: what was learned is still used.",
    );
    expect(one(".camit-lesson")?.textContent).toContain("Sentence 1: learning was off.");
    expect(one(".camit-curve")).toBeNull();
    host.learning.value = { ...host.learning.value, lessons: [lesson, { ...lesson, outcome: "off" }] };
    await settled();
    expect(one(".camit-lead")?.textContent).toContain("Learned from 1 of 1 lesson.");
    expect(all(".camit-curve circle")).toHaveLength(2);
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

import { describe, expect, it } from "vitest";
import { command, type Place, type Stroke } from "../src/keyboard";

function press(key: string, place: Place, more: Partial<Stroke> = {}) {
  return command({ key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more }, place);
}

describe("on the words", () => {
  it.each([
    ["ArrowLeft", { do: "move", by: -1, extend: false }],
    ["ArrowRight", { do: "move", by: 1, extend: false }],
    ["ArrowDown", { do: "line", by: 1, extend: false }],
    ["Home", { do: "edge", to: "first", extend: false }],
    ["End", { do: "edge", to: "last", extend: false }],
    ["Enter", { do: "edit" }],
    ["F2", { do: "edit" }],
    ["Delete", { do: "delete" }],
    ["Backspace", { do: "delete" }],
    ["Insert", { do: "insert", side: "before" }],
    [" ", { do: "keep" }],
    ["Escape", { do: "close" }],
    ["?", { do: "help" }],
    ["PageDown", { do: "sentence", by: 1 }],
  ])("%s", (key, wanted) => {
    expect(press(key, "words")).toEqual(wanted);
  });

  it("extends the selection with Shift", () => {
    expect(press("ArrowRight", "words", { shiftKey: true })).toEqual({ do: "move", by: 1, extend: true });
    expect(press("End", "words", { shiftKey: true })).toEqual({ do: "edge", to: "last", extend: true });
  });

  it("inserts after with Shift", () => {
    expect(press("Insert", "words", { shiftKey: true })).toEqual({ do: "insert", side: "after" });
  });

  it("opens the editor on any character, Chinese too", () => {
    expect(press("f", "words")).toEqual({ do: "type", text: "f" });
    expect(press("制", "words")).toEqual({ do: "type", text: "制" });
    expect(press("𠮷", "words")).toEqual({ do: "type", text: "𠮷" });
  });

  it("writes what AltGr and Option write, on every system", () => {
    const altGraph = { getModifierState: (key: string) => key === "AltGraph" };
    expect(press("q", "words", altGraph)).toEqual({ do: "type", text: "q" });
    expect(press("€", "words", { ...altGraph, ctrlKey: true, altKey: true })).toEqual({
      do: "type",
      text: "€",
    });
    expect(press("@", "words", { ctrlKey: true, altKey: true })).toEqual({ do: "type", text: "@" });
    expect(press("ż", "words", { altKey: true })).toEqual({ do: "type", text: "ż" });
    expect(press("@", "editor", { ctrlKey: true, altKey: true })).toBeNull();
  });

  it("leaves Ctrl+Alt and Alt with a letter to the host", () => {
    expect(press("f", "words", { ctrlKey: true, altKey: true })).toBeNull();
    expect(press("z", "words", { ctrlKey: true, altKey: true })).toBeNull();
    expect(press("€", "words", { metaKey: true })).toBeNull();
  });

  it("opens the editor for accents and input methods, and lets them go on in it", () => {
    expect(press("Dead", "words")).toEqual({ do: "compose" });
    expect(press("Process", "words")).toEqual({ do: "compose" });
    expect(press("n", "words", { keyCode: 229 })).toEqual({ do: "compose" });
    for (const place of ["editor", "elsewhere", "form", "popup", "source"] as const)
      expect(press("Enter", place, { keyCode: 229 })).toBeNull();
  });

  it("leaves function keys and Tab to others", () => {
    expect(press("F5", "words")).toBeNull();
    expect(press("Tab", "words")).toBeNull();
    expect(press("Shift", "words")).toBeNull();
  });

  it("rewrites the selection with Ctrl+Delete, copies with Ctrl+C", () => {
    expect(press("Delete", "words", { ctrlKey: true })).toEqual({ do: "rewrite" });
    expect(press("c", "words", { ctrlKey: true })).toEqual({ do: "copy" });
  });

  it("selects the sentence with Ctrl+A, which would be all cells of the notebook", () => {
    expect(press("a", "words", { ctrlKey: true })).toEqual({ do: "all" });
    expect(press("a", "words", { ctrlKey: true, altKey: true })).toBeNull();
    expect(press("a", "elsewhere", { ctrlKey: true })).toBeNull();
  });

  it("does not touch the host's own shortcuts", () => {
    expect(press("s", "words", { ctrlKey: true })).toBeNull();
    expect(press("f", "words", { altKey: true })).toBeNull();
  });
});

describe("on the source", () => {
  it("moves, and changes nothing", () => {
    expect(press("ArrowLeft", "source")).toEqual({ do: "read", by: -1 });
    expect(press("End", "source")).toEqual({ do: "read", to: "last" });
    expect(press("?", "source")).toEqual({ do: "help" });
    expect(press("z", "source", { ctrlKey: true })).toEqual({ do: "undo" });
    for (const key of ["x", "Delete", " ", "Enter", "Insert"]) expect(press(key, "source")).toBeNull();
  });
});

describe("anywhere", () => {
  it.each(["words", "elsewhere"] as const)("confirms, undoes and redoes (%s)", (place) => {
    expect(press("Enter", place, { ctrlKey: true })).toEqual({ do: "confirm" });
    expect(press("Enter", place, { metaKey: true })).toEqual({ do: "confirm" });
    expect(press("z", place, { ctrlKey: true })).toEqual({ do: "undo" });
    expect(press("Z", place, { ctrlKey: true, shiftKey: true })).toEqual({ do: "redo" });
    expect(press("y", place, { ctrlKey: true })).toEqual({ do: "redo" });
  });

  it("keeps letters on buttons to the buttons", () => {
    expect(press("f", "elsewhere")).toBeNull();
    expect(press("Enter", "elsewhere")).toBeNull();
    expect(press(" ", "elsewhere")).toBeNull();
  });
});

describe("in the editor", () => {
  it("takes what was typed, steps through suggestions, closes", () => {
    expect(press("Enter", "editor")).toEqual({ do: "apply" });
    expect(press("ArrowDown", "editor")).toEqual({ do: "suggest", by: 1 });
    expect(press("ArrowUp", "editor")).toEqual({ do: "suggest", by: -1 });
    expect(press("Escape", "editor")).toEqual({ do: "close" });
  });

  it("takes what was typed and confirms with Ctrl", () => {
    expect(press("Enter", "editor", { ctrlKey: true })).toEqual({ do: "finish" });
    expect(press("Enter", "editor", { metaKey: true })).toEqual({ do: "finish" });
  });

  it("leaves text editing to the input", () => {
    for (const key of ["a", "?", " ", "Delete", "Home", "ArrowLeft"]) expect(press(key, "editor")).toBeNull();
    expect(press("z", "editor", { ctrlKey: true })).toBeNull();
  });

  it("leaves every key to an input method that is composing", () => {
    expect(press("Enter", "editor", { isComposing: true })).toBeNull();
    expect(press("n", "words", { isComposing: true })).toBeNull();
  });
});

it("leaves other forms alone", () => {
  for (const key of ["Enter", "?", "Delete", "x"]) expect(press(key, "form")).toBeNull();
});

describe("a key that is held down", () => {
  it("confirms, deletes and locks once, and stays ours", () => {
    const held = { repeat: true };
    for (const key of ["Delete", "Backspace", " ", "Enter"])
      expect(press(key, "words", held)).toEqual({ do: "nothing" });
    expect(press("Enter", "words", { ...held, ctrlKey: true })).toEqual({ do: "nothing" });
    expect(press("Delete", "words", { ...held, ctrlKey: true })).toEqual({ do: "nothing" });
    expect(press("Enter", "editor", { ...held, ctrlKey: true })).toEqual({ do: "nothing" });
  });

  it("goes on moving and undoing", () => {
    expect(press("ArrowRight", "words", { repeat: true })).toMatchObject({ do: "move" });
    expect(press("z", "words", { repeat: true, ctrlKey: true })).toEqual({ do: "undo" });
  });
});

it("lets nothing through what is open in front", () => {
  expect(press("Enter", "popup", { ctrlKey: true })).toEqual({ do: "nothing" });
  expect(press("z", "popup", { ctrlKey: true })).toEqual({ do: "nothing" });
  for (const key of ["PageDown", "Delete", "a"]) expect(press(key, "popup")).toBeNull();
  expect(press("Escape", "popup")).toEqual({ do: "close" });
});

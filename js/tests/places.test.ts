import { describe, expect, it } from "vitest";
import { follow, landed } from "../src/places";
import { word } from "./desk";

const words = (text: string) => text.split(" ").map((item) => word(item));

/** The words of `before` that stand in the brackets, followed into `after`. */
function followed(before: string, after: string, edit?: { at: string; text: string }): string {
  const items = before.split(" ");
  const start = items.findIndex((item) => item.startsWith("["));
  const stop = items.findIndex((item) => item.endsWith("]")) + 1;
  const plain = words(before.replace(/[[\]]/g, ""));
  const at = plain.findIndex((item) => item.text === edit?.at);
  const known = edit && { start: at, stop: at + 1, text: edit.text };
  const found = follow({ start, stop }, plain, words(after), known);
  const there = words(after).slice(found.start, found.stop);
  return there.map((item) => item.text).join(" ");
}

describe("a word", () => {
  it("is followed to where it stands now", () => {
    expect(followed("We saw [him] .", "Yesterday we met him .")).toBe("him");
  });

  it("that was rewritten is what stands between its neighbours now", () => {
    expect(followed("We saw [him] there .", "We met her there .")).toBe("her");
    expect(followed("We [saw] him .", "We have seen him .")).toBe("have seen");
  });

  it("among several that were rewritten is its share of them", () => {
    expect(followed("We saw him [in] the park .", "We went home .")).toBe("went");
    expect(followed("We saw him in the [park] .", "We went home .")).toBe("home");
    expect(followed("We [saw him] .", "We have never seen her there .")).toBe("have never seen her there");
  });

  it("that is gone leaves the gap where it stood", () => {
    expect(followed("We [saw] him .", "We him .")).toBe("");
    const gap = follow({ start: 1, stop: 2 }, words("We saw him ."), words("Well , we him ."));
    expect(gap).toEqual({ start: 3, stop: 3 });
  });

  it("that was just replaced is what it was replaced with", () => {
    expect(followed("We [saw] him .", "Well , we met Ann .", { at: "saw", text: "met" })).toBe("met");
    expect(followed("We [saw] him .", "We ran into him .", { at: "saw", text: "ran into" })).toBe("ran into");
  });

  it("beside the one that was replaced keeps its side of it", () => {
    expect(followed("We saw [him] .", "They met her .", { at: "saw", text: "met" })).toBe("her");
  });

  it("that was deleted is gone, its neighbours are not", () => {
    expect(followed("We [never] saw him", "We saw him", { at: "never", text: "" })).toBe("");
    expect(followed("We never [saw] him", "We saw him", { at: "never", text: "" })).toBe("saw");
  });
});

it("words of one's own are what everything else is measured by", () => {
  const mine = (text: string) => words(text).map((item) => ({ ...item, locked: item.text === "Ann" }));
  const before = mine("Ann saw him in the park");
  const after = mine("in the park Ann was with him");
  expect(follow({ start: 0, stop: 1 }, before, after)).toEqual({ start: 3, stop: 4 });
});

it("a phrase is followed by its ends", () => {
  expect(followed("We saw [in the park] .", "There , in our park .")).toBe("in our park");
});

describe("a gap", () => {
  const gap = (at: number, after: string, edit?: { start: number; stop: number; text: string }) =>
    follow({ start: at, stop: at }, words("We saw him ."), words(after), edit);

  it("stays behind the word before it", () => {
    expect(gap(2, "Then we saw Ann .")).toEqual({ start: 3, stop: 3 });
    expect(gap(0, "Then we saw him .")).toEqual({ start: 0, stop: 0 });
    expect(gap(4, "We saw him again .")).toEqual({ start: 5, stop: 5 });
  });

  it("that something was put into comes behind it, so that words stand in the order they were typed", () => {
    const edit = { start: 1, stop: 1, text: "once" };
    expect(gap(1, "We once saw him .", edit)).toEqual({ start: 2, stop: 2 });
    expect(gap(0, "We once saw him .", edit)).toEqual({ start: 0, stop: 0 });
  });
});

describe("what was typed", () => {
  const film = words("the film makers of the film");
  const stands = (text: string, near: number) => landed(film, { text, start: near, stop: near });

  it("stands nearest to where it was put", () => {
    expect(stands("the", 0)?.start).toBe(0);
    expect(stands("the", 3)?.start).toBe(4);
  });

  it("can stand over several words, however it is spaced", () => {
    expect(stands("film makers", 0)).toEqual({ start: 1, stop: 3 });
    expect(stands("of  the", 0)).toEqual({ start: 3, stop: 5 });
  });

  it("may not stand there", () => {
    expect(stands("director", 0)).toBeNull();
    expect(stands("fil", 0)).toBeNull();
  });
});

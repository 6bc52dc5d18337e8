import { describe, expect, it } from "vitest";
import { duration, join, percent, plural, recollections, score, sideOfGap, spoken } from "../src/words";
import { entry, word } from "./desk";

describe("join", () => {
  it("spaces words as they are spaced, never at the start", () => {
    expect(join([word("We"), word("met"), word(".", { space: false })])).toBe("We met.");
    expect(join([word("我们", { space: false }), word("见面", { space: false })])).toBe("我们见面");
  });
});

describe("what is said of a word", () => {
  it("names its origin and where it was remembered", () => {
    expect(spoken(word("met", { origin: "yours" }), undefined)).toBe("met, yours");
    expect(spoken(word("met", { locked: true, origin: "kept" }), undefined)).toBe("met, kept, locked");
    expect(spoken(word("met", { memory: 1 }), entry(1, "met"))).toBe(
      "met, as first translated, from memory, sentence 1",
    );
    expect(spoken(word("met", { memory: 1 }), entry(1, "met", { row: null }))).toContain("added by hand");
  });

  it("names the sentence it was recalled from, unless the person wrote it or the memory has it", () => {
    expect(spoken(word("met", { like: 2 }), undefined)).toBe(
      "met, as first translated, recalled from sentence 3",
    );
    expect(spoken(word("met", { like: 2, origin: "yours" }), undefined)).toBe("met, yours");
    expect(spoken(word("met", { like: 2, memory: 1 }), entry(1, "met"))).not.toContain("recalled");
  });

  it("lists recalled words by their sentence, without marks", () => {
    const words = [word("We", { like: 0 }), word("met"), word("him", { like: 0 }), word(".", { like: 1 })];
    expect([...recollections(words)]).toEqual([[0, ["We", "him"]]]);
  });
});

it("writes numbers as people do", () => {
  expect([0, 0.004, 0.006, 1].map(percent)).toEqual(["0 %", "<1 %", "1 %", "100 %"]);
  expect(score(-1.456)).toBe("\u22121.46");
  expect(plural(1, "word")).toBe("1 word");
  expect(plural(0, "word")).toBe("0 words");
  expect(duration(42.4)).toBe("42 s");
  expect(duration(186)).toBe("3.1 min");
});

describe("the place for a click that inserts", () => {
  const close = (text: string) => word(text, { space: false });

  it("is the space, or lies on the neighbour that is no mark", () => {
    expect(sideOfGap(word("him"), word("in"))).toBe("space");
    expect(sideOfGap(word("him"), close(","))).toBe("back");
    expect(sideOfGap(word("("), close("him"))).toBe("ahead");
    expect(sideOfGap(word("我们"), close("见面"))).toBe("back");
  });

  it("lies outside the sentence at its edges", () => {
    expect(sideOfGap(undefined, word("We"))).toBe("back");
    expect(sideOfGap(close("."), undefined)).toBe("ahead");
  });
});

/** Places in a sentence, and where they are after the sentence was written anew: words have no identity but what they say. */

import type { Word } from "./protocol";

/** Half open, like a slice; empty for the gap before `start`. */
export interface Span {
  readonly start: number;
  readonly stop: number;
}

/** What stands from `start` to `stop` from now on. */
export interface Edit extends Span {
  readonly text: string;
}

interface Item {
  readonly text: string;
  /** The person's own: it stays in every wording, in its order. */
  readonly fixed: boolean;
}

/**
 * Where a place of the sentence `before` is in the sentence `after`: its words, or what stands between their neighbours
 * now, which may be nothing. `edit` is the change that led from one to the other, if that is known: what stood there
 * became what it put there.
 */
export function follow(place: Span, before: readonly Word[], after: readonly Word[], edit?: Edit): Span {
  const put = edit && landed(after, edit);
  if (!edit || !put) return aligned(place, before.map(item), after.map(item));
  const expected = [
    ...before.slice(0, edit.start),
    ...after.slice(put.start, put.stop),
    ...before.slice(edit.stop),
  ];
  return aligned(shifted(place, edit, put.stop - put.start), expected.map(item), after.map(item));
}

/** Where the text of an edit stands, as close as possible to where it was put; an empty span for nothing at all. */
export function landed(words: readonly Word[], { text, start: near }: Edit): Span | null {
  const squeezed = text.replace(/\s+/g, "");
  if (squeezed === "") return { start: near, stop: near };
  let best: Span | null = null;
  for (const start of words.keys()) {
    let run = "";
    let stop = start;
    for (; stop < words.length && run.length < squeezed.length; stop += 1) run += words[stop]?.text;
    const closer = best === null || Math.abs(start - near) < Math.abs(best.start - near);
    if (run === squeezed && closer) best = { start, stop };
  }
  return best;
}

const item = ({ text, origin, locked }: Word): Item => ({
  text: text.toLowerCase(),
  fixed: locked || origin === "yours",
});

/** A place, once `count` words stand where the edit is; what was typed into one gap twice stands in the order it was typed. */
function shifted({ start, stop }: Span, edit: Span, count: number): Span {
  const by = count - (edit.stop - edit.start);
  const behind = (at: number) => at >= edit.stop && (at > edit.start || edit.start === edit.stop);
  if (start === stop) {
    const at = behind(start) ? start + by : Math.min(start, edit.start);
    return { start: at, stop: at };
  }
  const first = start >= edit.stop ? start + by : Math.min(start, edit.start);
  const last = stop <= edit.start ? stop : Math.max(stop, edit.stop) + by;
  return { start: first, stop: Math.max(first, last) };
}

function aligned({ start, stop }: Span, before: readonly Item[], after: readonly Item[]): Span {
  const same = matches(before, after);
  /** A word, if it is there, else its share of what stands between its neighbours. */
  const share = (index: number): Span => {
    const here = same[index];
    if (here !== undefined) return { start: here, stop: here + 1 };
    let [from, to] = [index, index];
    while (from > 0 && same[from - 1] === undefined) from -= 1;
    while (to < before.length && same[to] === undefined) to += 1;
    const left = from === 0 ? 0 : (same[from - 1] ?? 0) + 1;
    const right = same[to] ?? after.length;
    const at = (place: number) => left + Math.floor(((place - from) * (right - left)) / (to - from));
    const start = at(index);
    return { start, stop: Math.min(right, Math.max(start + 1, at(index + 1))) };
  };
  if (start < stop) return { start: share(start).start, stop: share(stop - 1).stop };
  const at = start > 0 ? share(start - 1).stop : 0;
  return { start: at, stop: at };
}

/** What two wordings have in common, in order, the person's words before all others: for each word its index in `after`. */
function matches(before: readonly Item[], after: readonly Item[]): (number | undefined)[] {
  // worth[i][j]: of the best one of before[i:] and after[j:]
  const worth = Array.from({ length: before.length + 1 }, () => new Array<number>(after.length + 1).fill(0));
  const at = (i: number, j: number) => worth[i]?.[j] ?? 0;
  const together = (i: number, j: number) =>
    before[i]?.text === after[j]?.text ? at(i + 1, j + 1) + (before[i]?.fixed ? before.length : 1) : 0;
  for (let i = before.length - 1; i >= 0; i -= 1)
    for (let j = after.length - 1; j >= 0; j -= 1)
      (worth[i] as number[])[j] = Math.max(together(i, j), at(i + 1, j), at(i, j + 1));
  const found = new Array<number | undefined>(before.length).fill(undefined);
  for (let i = 0, j = 0; at(i, j) > 0; ) {
    if (together(i, j) === at(i, j)) {
      found[i] = j;
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) i += 1;
    else j += 1;
  }
  return found;
}

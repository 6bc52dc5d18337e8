/** Words as people read them: spacing, positions, descriptions. */
import type { Entry, Origin, Word } from "./protocol";

interface Spaced {
  readonly text: string;
  readonly space: boolean;
}

export function join(words: readonly Spaced[]): string {
  return words.map((word, index) => (word.space && index > 0 ? ` ${word.text}` : word.text)).join("");
}

export function changed(words: readonly Word[]): number {
  return words.filter((word) => word.origin === "changed").length;
}

const ORIGINS: Record<Origin, string> = {
  draft: "as first translated",
  kept: "kept",
  changed: "changed for you",
  yours: "yours",
};

export function originOf(word: Word): string {
  return word.locked && word.origin !== "yours" ? `${ORIGINS[word.origin]}, locked` : ORIGINS[word.origin];
}

/** Where a memory entry came from, in three words. */
export function provenance(entry: Entry): string {
  return entry.row === null ? "added by hand" : `sentence ${entry.row + 1}`;
}

/** The confirmed sentence a word was recalled from; what a person wrote, or a fix of theirs says, needs no such reason. */
export function recalledRow(word: Word): number | null {
  return word.origin === "yours" || word.memory !== null ? null : word.like;
}

/** The words of a sentence that were recalled, by the sentence they were recalled from. */
export function recollections(words: readonly Word[]): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>();
  for (const word of words) {
    const row = recalledRow(word);
    if (row !== null && !isMark(word.text)) found.set(row, [...(found.get(row) ?? []), word.text]);
  }
  return found;
}

/** What a screen reader says for one word of the translation. */
export function spoken(word: Word, entry: Entry | undefined): string {
  const row = recalledRow(word);
  const copied = entry ? `, from memory, ${provenance(entry)}` : "";
  const recalled = row === null ? "" : `, recalled from sentence ${row + 1}`;
  return `${word.text}, ${originOf(word)}${copied}${recalled}`;
}

const READS = 20;

/** The words that were written while this source word was read. */
export function readersOf(source: number, words: readonly Word[]): readonly string[] {
  return words.filter((word) => (word.attention[source] ?? 0) >= READS).map((word) => `“${word.text}”`);
}

/** What a screen reader says for one word of the source. */
export function spokenSource(text: string, readers: readonly string[]): string {
  return readers.length > 0 ? `${text}, read for ${readers.join(", ")}` : text;
}

/** A comma, a bracket: drawn so small that it must not share its place with a gap. */
export function isMark(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text);
}

/**
 * Where the place for a click lies that inserts between two words: on their space; without one, on whichever is no mark, a
 * little back or ahead; at the edges of the sentence, outside it.
 */
export function sideOfGap(before: Spaced | undefined, after: Spaced | undefined): "space" | "back" | "ahead" {
  if (!before) return "back";
  if (!after) return "ahead";
  if (after.space) return "space";
  return isMark(before.text) && !isMark(after.text) ? "ahead" : "back";
}

const LONG = 16;

/** May be broken at the end of a line, if it must be; anything shorter keeps together, with its marks. */
export function isLong(text: string): boolean {
  return text.length > LONG || /\s/.test(text);
}

/** Enough of a text to know it by. */
export function shortened(text: string, most = 40): string {
  const letters = [...text];
  return letters.length > most
    ? `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}\u2026`
    : text;
}

export function percent(value: number): string {
  return value > 0 && value < 0.005 ? "<1 %" : `${Math.round(value * 100)} %`;
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Mean log-probabilities read best with a real minus and two digits. */
export function score(value: number): string {
  return value.toFixed(2).replace("-", "\u2212");
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export function duration(seconds: number): string {
  return seconds < 60 ? `${Math.round(seconds)} s` : `${(seconds / 60).toFixed(1)} min`;
}

/** One line under the translation for whatever is worth saying now: an error, what just happened, or why a word stands there. */
import type { Store } from "../store";
import { originOf, percent, provenance } from "../words";
import { useStore } from "./context";
import { Icon } from "./Icon";

export function MessageLine() {
  const store = useStore();
  const problem = store.problem.value ?? store.sentence.value.problem;
  if (problem) {
    const retry = store.sentence.value.status === "failed";
    return (
      <div class="camit-message camit-problem" role="alert">
        <Icon name="alert" />
        <span>
          <strong>{problem.title}.</strong> {problem.detail} {problem.advice}
        </span>
        {retry && (
          <button type="button" class="camit-link" onClick={() => store.retry()}>
            Try again
          </button>
        )}
        {store.problem.value && (
          <button
            type="button"
            class="camit-link"
            onClick={() => {
              store.problem.value = null;
            }}
          >
            Dismiss
          </button>
        )}
      </div>
    );
  }
  const note = store.note.value;
  if (note && !store.hovered.value)
    return (
      <div class="camit-message camit-note">
        <Icon name="check" />
        <span>{store.noteText.value}</span>
        {note.confirmed !== null && (
          <button type="button" class="camit-link" onClick={() => store.unconfirm()}>
            Take back
          </button>
        )}
      </div>
    );
  return <p class="camit-message camit-dim">{explanation(store)}</p>;
}

/** Why the looked-at word stands there, or what to do. */
function explanation(store: Store): string {
  const { words, source, status } = store.sentence.value;
  const pointed = store.pointed.value;
  if (pointed?.side === "source") {
    const readers = words
      .filter((word) => (word.attention[pointed.index] ?? 0) >= 20)
      .map((word) => `“${word.text}”`);
    return readers.length > 0 ? `Read while writing ${readers.join(", ")}` : "Read a little by many words";
  }
  const word = pointed ? words[pointed.index] : undefined;
  if (!word) {
    if (store.readOnly.value) return "Point at a word to see where it comes from.";
    if (status === "confirmed") return "Confirmed. You can still change it.";
    return words.length > 0 ? "Click the worst word, or just type over it. The rest mends itself." : "";
  }
  const entry = word.memory === null ? undefined : store.entries.value.get(word.memory);
  const strongest = word.attention.indexOf(Math.max(...word.attention));
  const read = source[strongest];
  return [
    originOf(word),
    `probability ${percent(word.probability)}`,
    `copy weight θ ${percent(word.theta)}`,
    ...(read ? [`reads ${read.text} ${word.attention[strongest]} %`] : []),
    ...(entry ? [`from memory: “${entry.text}”, ${provenance(entry)}`] : []),
  ].join(" · ");
}

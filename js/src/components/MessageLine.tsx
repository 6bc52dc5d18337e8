/** One line under the translation for whatever is worth saying now: an error, what just happened, or why a word stands there. */
import type { Problem } from "../protocol";
import type { Store } from "../store";
import { capitalised, originOf, percent, provenance, readersOf, recalledRow } from "../words";
import { useStore } from "./context";
import { Icon } from "./Icon";
import { IconButton } from "./IconButton";
import { Link } from "./Link";

export function MessageLine() {
  const store = useStore();
  const { messages, sentence, hovered } = store;
  const note = messages.note.value;
  if (messages.problem.value ?? sentence.value.problem) return <ProblemLine />;
  if (note && !hovered.value)
    return (
      <div class="camit-note">
        <Icon name="check" />
        <span>{messages.noteText.value}</span>
        {note.confirmed !== null && <TakeBack />}
      </div>
    );
  const said = explanation(store);
  return (
    <div class="camit-dim">
      <span class="camit-explanation" title={said}>
        {said}
      </span>
      {[CONFIRMED, FINISHED].includes(said) && sentence.value.can_unconfirm && !store.readOnly.value && (
        <TakeBack />
      )}
    </div>
  );
}

function ProblemLine() {
  const store = useStore();
  const problem = store.messages.problem.value;
  const { title, detail, advice } = problem ?? (store.sentence.value.problem as Problem);
  const typed = problem?.typed;
  const dismiss = () => {
    store.messages.problem.value = null;
    store.grab.value += 1;
  };
  return (
    <div class="camit-problem" role="alert">
      <Icon name="alert" />
      <span>
        <strong>{title}.</strong> {detail} {advice} {typed && `You typed “${typed}”.`}
      </span>
      {typed && store.editable.value && (
        <Link
          name="Edit again"
          onClick={() => {
            dismiss();
            store.editing.open(store.span.value, typed);
          }}
        />
      )}
      {store.sentence.value.status === "failed" && <Link name="Try again" onClick={() => store.retry()} />}
      {problem && <IconButton icon="close" label="Dismiss" onClick={dismiss} />}
    </div>
  );
}

function TakeBack() {
  const store = useStore();
  return <Link name="Take back" onClick={() => store.unconfirm().then(() => store.focusOn(0))} />;
}

const CONFIRMED = "Confirmed.";
const FINISHED = "All sentences are confirmed.";

/** Why the looked-at word stands there, or what to do. */
function explanation(store: Store): string {
  const { words, source, status } = store.sentence.value;
  const pointed = store.pointed.value;
  if (pointed?.side === "source") {
    const readers = readersOf(pointed.index, words);
    return readers.length > 0 ? `Read while writing ${readers.join(", ")}` : "Read a little by many words";
  }
  const word = pointed ? words[pointed.index] : undefined;
  if (!word) {
    if (store.readOnly.value) return "Point at a word to see where it comes from.";
    if (status === "confirmed") {
      const { rows } = store.state.overview.value;
      return rows.length > 1 && rows.every((row) => row.status === "confirmed") ? FINISHED : CONFIRMED;
    }
    return words.length > 0 ? "Click the worst word, or just type over it. The rest mends itself." : "";
  }
  const entry = word.memory === null ? undefined : store.entries.value.get(word.memory);
  const recalled = recalledRow(word);
  const strongest = word.attention.indexOf(Math.max(...word.attention));
  const read = source[strongest];
  return [
    capitalised(originOf(word)),
    `probability ${percent(word.probability)}`,
    `copy weight θ ${percent(word.theta)}`,
    ...(read ? [`reads ${read.text} ${word.attention[strongest]} %`] : []),
    ...(entry ? [`from memory: “${entry.text}”, ${provenance(entry)}`] : []),
    ...(recalled === null
      ? []
      : [`${percent(word.recalled)} recalled, above all from sentence ${recalled + 1}`]),
  ].join(" · ");
}

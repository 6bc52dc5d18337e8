/** Whether it learned anything: one lesson for each confirmed sentence, before and after, accepted or rejected. */
import type { Lesson } from "../protocol";
import { capitalised, plural, recollections, score, shortened } from "../words";
import { useStore } from "./context";
import { LearningCurve } from "./LearningCurve";

export function LearningView() {
  const store = useStore();
  const { lessons, enabled, studying } = store.state.learning.value;
  const last = lessons.at(-1);
  const given = lessons.filter((lesson) => lesson.outcome !== "off");
  const learned = given.filter((lesson) => lesson.outcome === "learned").length;
  return (
    <div class="camit-view camit-learning">
      <div>
        {last ? (
          <>
            <p class="camit-lead">
              {given.length > 0
                ? `Learned from ${learned} of ${plural(given.length, "lesson")}.`
                : "No lesson yet."}
              {enabled ? "" : " Learning is switched off: what was learned is still used."}
            </p>
            <LessonLine lesson={last} />
            {store.readOnly.value || (
              <p>
                <button
                  type="button"
                  class="camit-link"
                  onClick={() => store.unconfirm().then(() => store.focusOn(0))}
                >
                  Take back the last confirmation
                </button>
              </p>
            )}
          </>
        ) : (
          <p class="camit-lead">
            {enabled
              ? "No lesson yet. Each sentence you confirm is one small step of training, and recalled where a later one is much like it. Both are kept only if a fixed set of other sentences does not get worse."
              : "Learning is switched off: confirmed sentences change the memory, not the model."}
          </p>
        )}
        <Recollections />
        <p class="camit-footnote" aria-live="polite">
          {studying !== null && enabled ? `Learning from sentence ${studying + 1}…` : ""}
        </p>
      </div>
      {given.length > 0 && <LearningCurve lessons={given} />}
    </div>
  );
}

/** Which words of the sentence on the desk stand there because a confirmed sentence has them. */
function Recollections() {
  const store = useStore();
  const { rows } = store.state.overview.value;
  return (
    <>
      {[...recollections(store.sentence.value.words)].map(([row, words]) => (
        <p key={row} class="camit-recollection">
          <strong>≈{row + 1}</strong> {words.map((word) => `“${word}”`).join(", ")}{" "}
          <span class="camit-dim">
            as in sentence {row + 1}: {shortened(rows[row]?.text ?? "", 80)}
          </span>
        </p>
      ))}
    </>
  );
}

const OUTCOMES = { learned: "learned", rejected: "not learned", off: "learning was off" } as const;

function LessonLine({ lesson }: { lesson: Lesson }) {
  const where = lesson.row === null ? "" : `Sentence ${lesson.row + 1}: `;
  return (
    <div class="camit-lesson" data-outcome={lesson.outcome}>
      <p>
        <strong>{capitalised(where + OUTCOMES[lesson.outcome])}</strong>
        {lesson.outcome === "off"
          ? ". The sentence is confirmed; the model stays as it is."
          : lesson.reason && `: ${lesson.reason}`}
      </p>
      {lesson.outcome !== "off" && <Scores lesson={lesson} />}
    </div>
  );
}

function Scores({ lesson }: { lesson: Lesson }) {
  const guard = `${lesson.guard >= 0 ? "+" : "\u2212"}${Math.abs(lesson.guard * 100).toFixed(2)} %`;
  return (
    <>
      <p>
        Score {score(lesson.before)} → {score(lesson.after)}{" "}
        <span class="camit-dim">mean log-probability per piece, both directions</span>
      </p>
      <p>
        Guard {guard} <span class="camit-dim">loss on sentences it must not forget</span>
      </p>
    </>
  );
}

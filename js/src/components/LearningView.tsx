/** Whether it learned anything: one lesson for each confirmed sentence, before and after, accepted or rejected. */
import type { Lesson } from "../protocol";
import { plural, score } from "../words";
import { useStore } from "./context";
import { LearningCurve } from "./LearningCurve";

export function LearningView() {
  const store = useStore();
  const { lessons, enabled, studying } = store.state.learning.value;
  const last = lessons.at(-1);
  const learned = lessons.filter((lesson) => lesson.accepted).length;
  return (
    <div class="camit-view camit-learning">
      <div>
        {last ? (
          <>
            <p class="camit-lead">
              Learned from {learned} of {plural(lessons.length, "lesson")}.
            </p>
            <LessonLine lesson={last} />
            {store.readOnly.value || (
              <p>
                <button type="button" class="camit-link" onClick={() => store.unconfirm()}>
                  Take back the last confirmation
                </button>
              </p>
            )}
          </>
        ) : (
          <p class="camit-lead">
            {enabled
              ? "No lesson yet. Each sentence you confirm is one small step of training, kept only if a fixed set of other sentences does not get worse."
              : "Learning is switched off: confirmed sentences change the memory, not the model."}
          </p>
        )}
        <p class="camit-footnote" aria-live="polite">
          {studying !== null && enabled ? `Learning from sentence ${studying + 1}…` : ""}
        </p>
      </div>
      {lessons.length > 0 && <LearningCurve lessons={lessons} />}
    </div>
  );
}

function LessonLine({ lesson }: { lesson: Lesson }) {
  const where = lesson.row === null ? "" : `Sentence ${lesson.row + 1}: `;
  const guard = `${lesson.guard >= 0 ? "+" : "\u2212"}${Math.abs(lesson.guard * 100).toFixed(2)} %`;
  return (
    <div class="camit-lesson" data-accepted={lesson.accepted}>
      <p>
        <strong>
          {where}
          {lesson.accepted ? "learned" : "not learned"}
        </strong>
        {lesson.accepted ? "" : `: ${lesson.reason}`}
      </p>
      <p>
        Score {score(lesson.before)} → {score(lesson.after)}{" "}
        <span class="camit-dim">mean log-probability per piece, both directions</span>
      </p>
      <p>
        Guard {guard} <span class="camit-dim">loss on sentences it must not forget</span>
      </p>
    </div>
  );
}

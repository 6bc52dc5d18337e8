/** A small curve over the document: each lesson from where the sentence stood before to where it stands after. */
import type { Lesson } from "../protocol";
import { score } from "../words";

const WIDTH = 360;
const HEIGHT = 132;
const PAD = { left: 44, right: 12, top: 10, bottom: 22 };

export function LearningCurve({ lessons }: { lessons: readonly Lesson[] }) {
  const values = lessons.flatMap((lesson) => [lesson.before, lesson.after]);
  const low = Math.floor(Math.min(...values) * 4) / 4;
  const high = Math.max(Math.ceil(Math.max(...values) * 4) / 4, low + 0.25);
  const y = (value: number) => PAD.top + ((high - value) / (high - low)) * (HEIGHT - PAD.top - PAD.bottom);
  const step = (WIDTH - PAD.left - PAD.right) / lessons.length;
  const x = (index: number) => PAD.left + step * (index + 0.5);
  const path = lessons.map(
    (lesson, index) =>
      `${index ? "L" : "M"}${x(index)} ${y(lesson.outcome === "learned" ? lesson.after : lesson.before)}`,
  );
  const every = Math.ceil(lessons.length / 12);
  return (
    <figure class="camit-curve">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Scores of ${lessons.length} lessons, before and after`}
      >
        {[low, high].map((value) => (
          <g key={value}>
            <line x1={PAD.left} x2={WIDTH - PAD.right} y1={y(value)} y2={y(value)} class="camit-curve-grid" />
            <text x={PAD.left - 6} y={y(value) + 3.5} text-anchor="end">
              {score(value)}
            </text>
          </g>
        ))}
        <path d={path.join("")} class="camit-curve-line" />
        {lessons.map((lesson, index) => (
          <g key={index} data-outcome={lesson.outcome}>
            <line
              x1={x(index)}
              x2={x(index)}
              y1={y(lesson.before)}
              y2={y(lesson.after)}
              class="camit-curve-step"
            />
            <circle cx={x(index)} cy={y(lesson.before)} r="3" class="camit-curve-before" />
            <circle cx={x(index)} cy={y(lesson.after)} r="3.5" class="camit-curve-after" />
            {index % every === 0 && (
              <text x={x(index)} y={HEIGHT - 6} text-anchor="middle">
                {lesson.row === null ? index + 1 : lesson.row + 1}
              </text>
            )}
          </g>
        ))}
      </svg>
      <figcaption class="camit-footnote">
        Hollow: before. Full: after. Grey: rejected, so undone. Higher is better.
      </figcaption>
    </figure>
  );
}

/** Rows of cells under a line of words: used for what the memory was asked, and for what the source was read for. */
import type { ComponentChildren } from "preact";

export interface Cell {
  readonly column: number;
  /** 0 to 1: how dark it is drawn. */
  readonly shade: number;
  /** What it says when pointed at. */
  readonly title: string;
}

export interface HeatRow {
  readonly key: string | number;
  readonly label: ComponentChildren;
  /** The row in words, for those who do not see it. */
  readonly spoken: string;
  readonly cells: readonly Cell[];
  /** Bars from the bottom instead of shades. */
  readonly bars?: boolean;
  readonly below?: ComponentChildren;
}

interface Props {
  label: string;
  columns: readonly string[];
  language: string;
  rows: readonly HeatRow[];
  lit: number | null;
  /** Room for the labels on the left, in pixels. */
  labels: number;
  onPoint: (column: number | null) => void;
}

/** Only cells that can be seen are elements; the empty ones are a background, so a hundred rows of sixty words stay light. */
export function HeatMap({ label, columns, language, rows, lit, labels, onPoint }: Props) {
  const point = (event: PointerEvent) => {
    const strip = event.currentTarget as HTMLElement;
    const { left, width } = strip.getBoundingClientRect();
    onPoint(Math.min(columns.length - 1, Math.floor(((event.clientX - left) / width) * columns.length)));
  };
  return (
    <section
      class="camit-heat"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
      tabIndex={0}
      style={{ "--columns": columns.length, "--label": `${labels}px` }}
      data-lit={lit ?? undefined}
    >
      <div class="camit-heat-head" aria-hidden="true">
        <span class="camit-heat-label" />
        <div class="camit-heat-columns">
          {columns.map((word, index) => (
            <span key={index} lang={language} data-lit={index === lit || undefined}>
              {word}
            </span>
          ))}
        </div>
      </div>
      <ul>
        {rows.map((row) => (
          <li key={row.key}>
            <div class="camit-heat-row">
              <div class="camit-heat-label">{row.label}</div>
              <div
                class="camit-heat-strip"
                data-bars={row.bars || undefined}
                aria-hidden="true"
                onPointerMove={point}
                onPointerLeave={() => onPoint(null)}
              >
                {row.cells.map((cell) => (
                  <i
                    key={cell.column}
                    style={{ "--column": cell.column, "--shade": cell.shade }}
                    title={cell.title}
                  />
                ))}
              </div>
              <span class="camit-hidden">{row.spoken}</span>
            </div>
            {row.below}
          </li>
        ))}
      </ul>
    </section>
  );
}

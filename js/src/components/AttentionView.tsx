/** Which source word was read for which word of the translation. */
import { join } from "../words";
import { useStore } from "./context";
import { HeatMap, type HeatRow } from "./HeatMap";

const FAINTEST = 3;

export function AttentionView() {
  const store = useStore();
  const { source, words } = store.sentence.value;
  const { source_language, target_language } = store.state.overview.value;
  const columns = words.map((word) => word.text);
  const rows = source.map((read, index): HeatRow => {
    const cells = words.flatMap((word, column) => {
      const weight = word.attention[index] ?? 0;
      return weight >= FAINTEST ? [{ column, shade: weight / 100, title: `${weight} %` }] : [];
    });
    return {
      key: index,
      label: (
        <span lang={source_language} dir="auto">
          {read.text}
        </span>
      ),
      spoken: cells.map((cell) => `${columns[cell.column]} ${cell.title}`).join(", ") || "hardly read",
      cells,
    };
  });
  if (words.length === 0) return <p class="camit-view camit-lead">Nothing is translated yet.</p>;
  return (
    <div class="camit-view">
      <HeatMap
        label={`Attention of ${join(words)}`}
        columns={columns}
        language={target_language}
        rows={rows}
        labels={112}
        lit={store.pointed.value?.side === "target" ? store.pointed.value.index : null}
        onPoint={(column) => {
          store.hovered.value = column === null ? null : { side: "target", index: column };
        }}
      />
      <p class="camit-footnote">
        A strong cell means that the source word on the left was read while the word above was written.
      </p>
    </div>
  );
}

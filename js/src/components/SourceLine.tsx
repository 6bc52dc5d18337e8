/** The sentence to translate; words that the looked-at word attends to light up, and the other way round. */
import { isLong, readersOf, spokenSource } from "../words";
import { useStore } from "./context";

export function SourceLine() {
  const store = useStore();
  const { source, words } = store.sentence.value;
  const pointed = store.pointed.value;
  const lit = pointed?.side === "target" ? words[pointed.index]?.attention : undefined;
  return (
    <div
      role="listbox"
      class="camit-source"
      lang={store.state.overview.value.source_language}
      dir="auto"
      aria-label="Source"
      aria-orientation="horizontal"
      onFocusOut={() => {
        store.focused.value = null;
      }}
    >
      {source.map((word, index) => {
        const pointedAt = pointed?.side === "source" && pointed.index === index;
        const weight = pointedAt ? 100 : (lit?.[index] ?? 0);
        return (
          <>
            {word.space && index > 0 ? " " : ""}
            <span
              key={index}
              role="option"
              class="camit-sourceword"
              aria-selected={pointedAt}
              aria-label={spokenSource(word.text, readersOf(index, words))}
              tabIndex={index === store.reading.value ? 0 : -1}
              style={{ "--lit": weight / 100 }}
              data-long={isLong(word.text) || undefined}
              data-lit={weight >= 10 || undefined}
              onPointerMove={() => {
                store.hovered.value = { side: "source", index };
              }}
              onPointerLeave={() => {
                store.hovered.value = null;
              }}
              onFocus={() => {
                store.reading.value = index;
                store.focused.value = { side: "source", index };
              }}
            >
              {word.text}
            </span>
          </>
        );
      })}
    </div>
  );
}

/** The translation as words that can be walked over, pointed at, selected and changed. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useStore } from "./context";
import { Gap, InsertedWord, WordSpan } from "./WordSpan";

export function TargetLine() {
  const store = useStore();
  const list = useRef<HTMLDivElement>(null);
  const { words, status } = store.sentence.value;
  const arriving = (at: number) =>
    store.changes.pending.value
      .filter(({ start, stop }) => start === at && stop === at)
      .map(({ text }, turn) => <InsertedWord key={turn} text={text} />);
  const grab = store.grab.value;
  // Before the next key can arrive: a focus that comes late would take a quick second step back.
  useLayoutEffect(() => {
    if (grab === 0) return;
    const stop = list.current?.querySelector<HTMLElement>("[role=option][tabindex='0']") ?? list.current;
    stop?.focus({ preventScroll: true });
  }, [grab]);
  useDragEnd();
  return (
    <div
      ref={list}
      role="listbox"
      class="camit-target"
      lang={store.state.overview.value.target_language}
      dir="auto"
      aria-label="Translation"
      aria-multiselectable="true"
      aria-orientation="horizontal"
      aria-busy={store.busy.value}
      tabIndex={words.length === 0 ? 0 : -1}
      data-busy={store.busy.value || undefined}
      onFocusIn={() => {
        store.inWords.value = true;
      }}
      onFocusOut={() => {
        store.inWords.value = false;
        store.focused.value = null;
      }}
    >
      {words.length === 0 && (
        <span class="camit-empty">{status === "failed" ? "Not translated." : "Translating\u2026"}</span>
      )}
      {words.map((word, index) => (
        <>
          <Gap at={index} before={words[index - 1]} after={word} />
          {arriving(index)}
          <WordSpan
            key={index}
            word={word}
            index={index}
            previous={words[index - 1]}
            next={words[index + 1]}
          />
        </>
      ))}
      {words.length > 0 && <Gap at={words.length} before={words.at(-1)} after={undefined} />}
      {arriving(words.length)}
    </div>
  );
}

/** A drag that ends anywhere ends: over the words it opens the editor for the phrase, elsewhere it just stays selected. */
function useDragEnd(): void {
  const store = useStore();
  useEffect(() => {
    const end = () => {
      store.dragging.value = null;
    };
    document.addEventListener("pointerup", end);
    return () => document.removeEventListener("pointerup", end);
  }, [store]);
}

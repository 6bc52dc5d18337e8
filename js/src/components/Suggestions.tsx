import type { Editor } from "../editing";
import { percent, provenance } from "../words";
import { useStore } from "./context";

/** What the model would write here, likeliest first. The box keeps its height, full or empty, so nothing jumps. */
export function Suggestions({ id, editor }: { id: string; editor: Editor }) {
  const store = useStore();
  const language = store.state.overview.value.target_language;
  return (
    <div class="camit-suggestions" data-loading={editor.loading || undefined}>
      {editor.suggestions.length === 0 && !editor.loading && (
        <p class="camit-dim">
          {editor.mode === "insert" && !editor.typed
            ? "Type a word."
            : editor.whole && editor.stop > 1
              ? "The whole sentence: Enter takes what you write in its place."
              : "No suggestion: Enter takes what you typed."}
        </p>
      )}
      <div role="listbox" id={id} aria-label="Suggestions">
        {editor.suggestions.map((item, index) => {
          const entry = item.memory === null ? undefined : store.entries.value.get(item.memory);
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys of the input do it
            // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus and names the active option
            <div
              key={item.text}
              id={`${id}-${index}`}
              role="option"
              class="camit-suggestion"
              aria-selected={index === editor.chosen}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => store.editing.take(item)}
            >
              <span class="camit-suggestion-text" lang={language} dir="auto">
                {item.text}
              </span>
              {item.memory !== null && (
                <span class="camit-tag">memory{entry ? ` · ${provenance(entry)}` : ""}</span>
              )}
              <span class="camit-bar" style={{ "--share": item.probability }} aria-hidden="true" />
              <span class="camit-percent">{percent(item.probability)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

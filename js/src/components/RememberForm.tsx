import { useSignal } from "@preact/signals";
import { useStore } from "./context";

/** Add to the memory by hand: a term from a glossary, a name. */
export function RememberForm() {
  const store = useStore();
  const source = useSignal("");
  const text = useSignal("");
  if (store.readOnly.value) return null;
  const ready = source.value.trim() !== "" && text.value.trim() !== "";
  const add = async () => {
    if (ready && (await store.remember(source.value.trim(), text.value.trim()))) {
      source.value = "";
      text.value = "";
    }
  };
  return (
    <form
      class="camit-remember"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <input
        class="camit-input"
        type="text"
        aria-label="Source to remember"
        placeholder="source phrase"
        lang={store.state.overview.value.source_language}
        value={source.value}
        onInput={(event) => {
          source.value = event.currentTarget.value;
        }}
      />
      <input
        class="camit-input"
        type="text"
        aria-label="Translation to remember"
        placeholder="its translation"
        lang={store.state.overview.value.target_language}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      <button type="submit" class="camit-button" aria-disabled={!ready}>
        Remember
      </button>
    </form>
  );
}

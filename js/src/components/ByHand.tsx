import { type Signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { command } from "../keyboard";
import { useStore } from "./context";
import { focusIsLost } from "./focus";
import { Icon } from "./Icon";
import { Link } from "./Link";

/** The memory, changed by hand: a form to add to it, and what was done to it last. */
export function ByHand() {
  const store = useStore();
  const done = store.remembering.done.value;
  const box = useRef<HTMLDivElement>(null);
  // Once all is taken back there is nothing to press any more: the keyboard stays beside it.
  useLayoutEffect(() => {
    if (box.current && done && !done.undo && focusIsLost(box.current))
      box.current.querySelector("input")?.focus({ preventScroll: true });
  }, [done]);
  if (store.readOnly.value) return null;
  return (
    <div class="camit-byhand" ref={box}>
      <RememberForm />
      <p class="camit-done">
        {done && <Icon name="check" />}
        <span>
          <span class="camit-said">{done?.text}</span>
          {done?.undo && <Link name="Undo" onClick={() => store.remembering.undo()} />}
        </span>
      </p>
    </div>
  );
}

/** Add to the memory by hand: a term from a glossary, a name. */
function RememberForm() {
  const store = useStore();
  const source = useSignal("");
  const text = useSignal("");
  const { source_language, target_language } = store.state.overview.value;
  const ready = source.value.trim() !== "" && text.value.trim() !== "";
  const add = async () => {
    if (ready && (await store.remembering.remember(source.value.trim(), text.value.trim()))) {
      source.value = "";
      text.value = "";
    }
  };
  return (
    <form
      class="camit-remember"
      onKeyDown={(event) => {
        // An empty form has nothing of its own to undo; the keyboard comes here when the last entry is forgotten.
        const empty = source.value === "" && text.value === "";
        if (empty && command(event, "elsewhere")?.do === "undo" && store.remembering.undo())
          event.preventDefault();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <Field name="Source to remember" hint="source phrase" language={source_language} value={source} />
      <Field name="Translation to remember" hint="its translation" language={target_language} value={text} />
      <button type="submit" class="camit-button" aria-disabled={!ready}>
        Remember
      </button>
    </form>
  );
}

interface FieldProps {
  name: string;
  hint: string;
  language: string;
  value: Signal<string>;
}

function Field({ name, hint, language, value }: FieldProps) {
  return (
    <input
      class="camit-input"
      type="text"
      aria-label={name}
      placeholder={hint}
      lang={language}
      dir="auto"
      value={value.value}
      onInput={(event) => {
        value.value = event.currentTarget.value;
      }}
    />
  );
}

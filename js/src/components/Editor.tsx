/** The word editor: type, or choose among what the model would write there. Floats in the top layer, so nothing moves. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Editor as Edit, outcomeOf } from "../editing";
import { useStore } from "./context";
import { usePlaced } from "./place";
import { Suggestions } from "./Suggestions";

export function EditorPopover() {
  const store = useStore();
  const editor = store.editing.editor.value;
  // A new key makes a new element: its own position, its own selection.
  return editor && <Editor key={editor.id} editor={editor} />;
}

function Editor({ editor }: { editor: Edit }) {
  const store = useStore();
  const box = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const { version } = store.sentence.value;
  usePlaced(box, () => anchorOf(store.id, box.current, editor), [version, editor.mode, editor.start]);
  // At once: the second letter that is typed must find the input.
  useLayoutEffect(() => {
    input.current?.focus({ preventScroll: true });
    const whole = editor.text === editor.original;
    input.current?.setSelectionRange(whole ? 0 : editor.text.length, editor.text.length);
  }, []);
  const phrase = editor.stop - editor.start > 1;
  const name = editor.mode === "insert" ? "Insert a word" : `Change “${editor.original}”`;
  const list = `${store.id}-suggestions`;
  return (
    <div
      ref={box}
      popover="manual"
      role="dialog"
      aria-label={name}
      class="camit-editor"
      // Some browsers give no focus to a button that is clicked: what is around it has it then, and that is still in here.
      tabIndex={-1}
      onFocusOut={(event) => {
        if (!box.current?.contains(event.relatedTarget as Node | null) && event.relatedTarget)
          store.editing.settle();
      }}
    >
      <input
        ref={input}
        class="camit-input"
        type="text"
        role="combobox"
        aria-label={editor.mode === "insert" ? "Word or words to insert" : "Replace with"}
        aria-expanded={editor.suggestions.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={editor.chosen >= 0 ? `${list}-${editor.chosen}` : undefined}
        placeholder={PLACEHOLDERS[editor.whole ? "whole" : editor.mode]}
        lang={store.state.overview.value.target_language}
        dir="auto"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={editor.text}
        onInput={(event) => store.editing.type(event.currentTarget.value)}
      />
      <Suggestions id={list} editor={editor} />
      <Operations editor={editor} phrase={phrase} />
    </div>
  );
}

const PLACEHOLDERS = {
  insert: "insert here",
  replace: "nothing: delete",
  whole: "nothing: stays as it is",
} as const;
const ENTER = { replace: "replace", insert: "insert", delete: "delete", close: "close" } as const;

function Operations({ editor, phrase }: { editor: Edit; phrase: boolean }) {
  const store = useStore();
  const words = store.words.slice(editor.start, editor.stop);
  const locked = words.length > 0 && words.every((word) => word.locked);
  const act = (what: () => void) => () => {
    store.editing.leave();
    what();
  };
  return (
    <div class="camit-operations">
      <button
        type="button"
        class="camit-operation"
        title="Enter; with Ctrl, confirm the sentence too"
        onClick={() => store.editing.apply()}
      >
        <kbd>↵</kbd> {ENTER[outcomeOf(editor)]}
      </button>
      {editor.mode === "replace" && (
        <>
          {phrase && !editor.whole && (
            <button
              type="button"
              class="camit-operation"
              title="The model writes something else here; the rest stays (Ctrl Del)"
              onClick={act(() => store.changes.rewrite(editor))}
            >
              rewrite
            </button>
          )}
          {!editor.whole && (
            <button
              type="button"
              class="camit-operation"
              title="Delete (Del on the word)"
              onClick={act(() => store.changes.delete(editor))}
            >
              delete
            </button>
          )}
          <button
            type="button"
            class="camit-operation"
            title="Insert before (Ins)"
            onClick={() => store.editing.openGap(editor.start)}
          >
            ◂ insert
          </button>
          <button
            type="button"
            class="camit-operation"
            title="Insert after (Shift Ins)"
            onClick={() => store.editing.openGap(editor.stop)}
          >
            insert ▸
          </button>
          <button
            type="button"
            class="camit-operation"
            title={locked ? "Let it change again (Space)" : "Never change it (Space)"}
            onClick={act(() => store.changes.toggleKeep(editor))}
          >
            {locked ? "release" : "keep"}
          </button>
        </>
      )}
    </div>
  );
}

/** The element the editor belongs to: the first word of the span, or the gap. */
function anchorOf(id: string, box: HTMLElement | null, editor: Edit): Element | null {
  const root = box?.closest(".camit");
  if (editor.mode === "insert") return root?.querySelector(`[data-gap="${editor.start}"]`) ?? null;
  return root?.querySelector(`#${id}-word-${editor.start}`) ?? null;
}

/** Keys to commands, as one pure function: what a key means depends only on where it is pressed. */

export interface Stroke {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  /** The key is held down. */
  readonly repeat?: boolean;
  /** Keys pressed while an input method composes (Chinese, Japanese, accents) belong to it. */
  readonly isComposing?: boolean;
  /** 229 for a key that an input method has taken, whatever it is called. */
  readonly keyCode?: number;
  getModifierState?(key: string): boolean;
}

/** words: on a word of the translation. source: on one of the source. editor: in the input of the word editor. form: in any
 * other input. popup: in a menu or a dialog. */
export type Place = "words" | "source" | "editor" | "form" | "popup" | "elsewhere";

export type Command =
  | { readonly do: "move"; readonly by: -1 | 1; readonly extend: boolean }
  | { readonly do: "edge"; readonly to: "first" | "last"; readonly extend: boolean }
  | { readonly do: "line"; readonly by: -1 | 1; readonly extend: boolean }
  | { readonly do: "type"; readonly text: string }
  /** Along the source words. */
  | { readonly do: "read"; readonly by: -1 | 1 }
  | { readonly do: "read"; readonly to: "first" | "last" }
  | { readonly do: "suggest"; readonly by: -1 | 1 }
  | { readonly do: "sentence"; readonly by: -1 | 1 }
  | { readonly do: "insert"; readonly side: "before" | "after" }
  | {
      readonly do:
        | "edit"
        /** Open the editor for a letter that takes more than one key: the input gets it when it is made. */
        | "compose"
        | "apply"
        /** Take what was typed, and confirm. */
        | "finish"
        | "close"
        | "delete"
        | "rewrite"
        | "keep"
        | "confirm"
        | "undo"
        | "redo"
        | "copy"
        /** Select the whole sentence. */
        | "all"
        | "help"
        /** Ours, but there is nothing to do. */
        | "nothing";
    };

/** Commands of which nobody wants another one just because a key is still held down. */
const ONCE = new Set<Command["do"]>([
  "confirm",
  "finish",
  "delete",
  "rewrite",
  "keep",
  "edit",
  "apply",
  "insert",
  "help",
]);

export function command(stroke: Stroke, place: Place): Command | null {
  if (stroke.isComposing) return null;
  if (isTaken(stroke)) return place === "words" ? { do: "compose" } : null;
  const found = meaning(stroke, place);
  return found && stroke.repeat && ONCE.has(found.do) ? { do: "nothing" } : found;
}

function meaning(stroke: Stroke, place: Place): Command | null {
  if (place === "editor") return inEditor(stroke);
  if (place === "popup") return inPopup(stroke);
  if (place === "form") return null;
  if (isCharacter(stroke)) return place === "words" ? onWords(stroke) : everywhere(stroke);
  const anywhere = withControl(stroke);
  if (anywhere || hasControl(stroke))
    return place === "words" ? (anywhere ?? controlOnWords(stroke)) : anywhere;
  if (place === "source") return onSource(stroke);
  return place === "words" ? onWords(stroke) : everywhere(stroke);
}

/** The first key of an accent, or one that an input method keeps. */
function isTaken(stroke: Stroke): boolean {
  return stroke.key === "Dead" || stroke.key === "Process" || stroke.keyCode === 229;
}

/**
 * Writes a character, although a key is held that otherwise makes a shortcut of it: AltGr, which Windows calls Ctrl+Alt
 * (€ and @ on many keyboards), or Option on a Mac. Ctrl+Alt+F stays a shortcut.
 */
export function isCharacter(stroke: Stroke): boolean {
  if ([...stroke.key].length !== 1 || stroke.metaKey || /\s/.test(stroke.key)) return false;
  if (stroke.getModifierState?.("AltGraph")) return true;
  return stroke.altKey && !/[a-z0-9]/i.test(stroke.key);
}

const hasControl = (stroke: Stroke) => stroke.ctrlKey || stroke.metaKey;

function withControl(stroke: Stroke): Command | null {
  if (!hasControl(stroke) || stroke.altKey) return null;
  const key = stroke.key.toLowerCase();
  if (key === "enter") return { do: "confirm" };
  if (key === "z") return { do: stroke.shiftKey ? "redo" : "undo" };
  if (key === "y") return { do: "redo" };
  return null;
}

function controlOnWords(stroke: Stroke): Command | null {
  if (stroke.key === "Delete" || stroke.key === "Backspace") return { do: "rewrite" };
  if (stroke.altKey || stroke.shiftKey) return null;
  const key = stroke.key.toLowerCase();
  return key === "c" ? { do: "copy" } : key === "a" ? { do: "all" } : null;
}

function everywhere(stroke: Stroke): Command | null {
  if (stroke.altKey && !isCharacter(stroke)) return null;
  switch (stroke.key) {
    case "?":
      return { do: "help" };
    case "Escape":
      return { do: "close" };
    case "PageUp":
      return { do: "sentence", by: -1 };
    case "PageDown":
      return { do: "sentence", by: 1 };
    default:
      return null;
  }
}

function onWords(stroke: Stroke): Command | null {
  const extend = stroke.shiftKey;
  if (stroke.altKey && !isCharacter(stroke)) return null;
  switch (stroke.key) {
    case "ArrowLeft":
      return { do: "move", by: -1, extend };
    case "ArrowRight":
      return { do: "move", by: 1, extend };
    case "ArrowUp":
      return { do: "line", by: -1, extend };
    case "ArrowDown":
      return { do: "line", by: 1, extend };
    case "Home":
      return { do: "edge", to: "first", extend };
    case "End":
      return { do: "edge", to: "last", extend };
    case "Enter":
    case "F2":
      return { do: "edit" };
    case "Delete":
    case "Backspace":
      return { do: "delete" };
    case "Insert":
      return { do: "insert", side: extend ? "after" : "before" };
    case " ":
      return { do: "keep" };
    default:
      return everywhere(stroke) ?? typed(stroke);
  }
}

function onSource(stroke: Stroke): Command | null {
  switch (stroke.key) {
    case "ArrowLeft":
      return { do: "read", by: -1 };
    case "ArrowRight":
      return { do: "read", by: 1 };
    case "Home":
      return { do: "read", to: "first" };
    case "End":
      return { do: "read", to: "last" };
    default:
      return everywhere(stroke);
  }
}

/** "Just type": a printable character opens the editor with it. */
function typed(stroke: Stroke): Command | null {
  return [...stroke.key].length === 1 ? { do: "type", text: stroke.key } : null;
}

/** What is open in front has the keyboard: nothing reaches what is behind it. */
function inPopup(stroke: Stroke): Command | null {
  if (withControl(stroke)) return { do: "nothing" };
  const found = hasControl(stroke) ? null : everywhere(stroke);
  return found?.do === "sentence" ? null : found;
}

function inEditor(stroke: Stroke): Command | null {
  switch (stroke.key) {
    case "Enter":
      return { do: hasControl(stroke) ? "finish" : "apply" };
    case "Escape":
      return { do: "close" };
    case "ArrowDown":
      return { do: "suggest", by: 1 };
    case "ArrowUp":
      return { do: "suggest", by: -1 };
    default:
      return null;
  }
}

/** For the help overlay and the hints: the keys as they are printed. */
export const KEYS: readonly { readonly keys: readonly string[]; readonly what: string }[] = [
  { keys: ["←", "→", "↑", "↓"], what: "move over the words; in the source line, see what became of each" },
  { keys: ["Home", "End"], what: "first and last word" },
  { keys: ["Shift ←", "Shift →", "Ctrl A"], what: "select a phrase, the sentence" },
  {
    keys: ["Enter"],
    what: "edit the word, then take what you typed; just typing works too, and so does turning elsewhere",
  },
  { keys: ["Ins", "Shift Ins"], what: "insert before, after" },
  { keys: ["Del"], what: "delete" },
  { keys: ["Ctrl Del"], what: "rewrite the selected words: the model writes something else there" },
  { keys: ["Space"], what: "lock the word, or release it" },
  { keys: ["Ctrl Enter"], what: "confirm the sentence, with what you are typing, and go on" },
  { keys: ["Ctrl Z", "Ctrl Shift Z"], what: "undo, redo" },
  { keys: ["Ctrl C"], what: "copy the sentence, or the selected part" },
  { keys: ["PgUp", "PgDn"], what: "previous, next sentence" },
  { keys: ["Esc"], what: "close without what you typed, or stop what is running" },
  { keys: ["?"], what: "this help; while you edit a word, a question mark" },
];

/** One view of the widget: the parts in their places, and the keyboard. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { perform } from "../commands";
import { command, isCharacter, type Place } from "../keyboard";
import type { Store } from "../store";
import { watchTheme } from "../theme";
import { ActionBar } from "./ActionBar";
import { ConnectionNotice } from "./ConnectionNotice";
import { StoreContext } from "./context";
import { EditorPopover } from "./Editor";
import { Header } from "./Header";
import { HelpOverlay } from "./HelpOverlay";
import { MessageLine } from "./MessageLine";
import { PlaybackControls, PlaybackLine } from "./PlaybackLine";
import { Rail } from "./Rail";
import { SourceLine } from "./SourceLine";
import { Tabs } from "./Tabs";
import { TargetLine } from "./TargetLine";

export function App({ store }: { store: Store }) {
  const root = useRef<HTMLElement>(null);
  // At once: the first key may come before the first paint.
  useLayoutEffect(() => {
    const element = root.current;
    if (!element) return;
    const theme = watchTheme(element, (found) => {
      element.dataset.camitTheme = found;
    });
    const keys = keepKeys(element);
    const undoing = keepUndoing(element);
    return () => {
      theme();
      keys();
      undoing();
    };
  }, []);
  return (
    <StoreContext.Provider value={store}>
      <section
        ref={root}
        class="camit"
        aria-label="Interactive translation"
        // A click on any blank spot of it leaves the keyboard here, not with the notebook and its one-letter commands.
        tabIndex={-1}
        onMouseDown={keepFocus}
        onKeyDown={(event) => onKey(event, store)}
        onPointerDown={() => store.effort.click()}
      >
        <Header />
        <ConnectionNotice />
        <div class="camit-body">
          <Rail />
          <Desk store={store} />
        </div>
        <Tabs />
        {store.panel.value === "help" && <HelpOverlay />}
        <p class="camit-hidden" role="status" aria-live="polite">
          {store.messages.announcement.value}
        </p>
      </section>
    </StoreContext.Provider>
  );
}

function Desk({ store }: { store: Store }) {
  const replaying = store.playback.showing.value !== null;
  return (
    <div class="camit-desk">
      <SourceLine />
      {replaying ? <PlaybackLine /> : <TargetLine />}
      <div class="camit-message">{replaying ? <PlaybackControls /> : <MessageLine />}</div>
      <ActionBar />
      <EditorPopover />
    </div>
  );
}

/**
 * Keys we understand are ours, and so is every plain key; Ctrl+S and its like belong to the notebook. Enter is ours with
 * anything: a notebook would run the cell, and all that was done here would be gone. What an input does by itself, it does.
 */
function isOurs(event: KeyboardEvent, target: HTMLElement): boolean {
  const plain = !(event.ctrlKey || event.metaKey || event.altKey) || isCharacter(event);
  const inInput = target.matches("input, textarea") && /^[acvxyz]$/i.test(event.key);
  return plain || event.key === "Enter" || inInput || command(event, placeOf(target)) !== null;
}

const SUPPRESS = "data-lm-suppress-shortcuts";

/**
 * Notebooks listen for their shortcuts on the document, some before the widget sees a key (Notebook 7), some after
 * (JupyterLab). Both let a key be that is pressed in an element with this attribute, so the element is told, key by key
 * and before anybody else looks. It must be that element itself: their selectors match the focused one first.
 */
function keepKeys(root: HTMLElement): () => void {
  let marked: HTMLElement | null = null;
  const release = () => {
    marked?.removeAttribute(SUPPRESS);
    marked = null;
  };
  const claim = (event: KeyboardEvent) => {
    release();
    const [target] = event.composedPath(); // in a shadow tree, `event.target` is its host by now
    if (!(target instanceof HTMLElement) || !root.contains(target) || !isOurs(event, target)) return;
    target.setAttribute(SUPPRESS, "");
    marked = target;
  };
  window.addEventListener("keydown", claim, true);
  root.addEventListener("focusout", release);
  return () => {
    release();
    window.removeEventListener("keydown", claim, true);
    root.removeEventListener("focusout", release);
  };
}

/** What an input undoes by itself it does: JupyterLab would have its notebook undo something in its place. */
function keepUndoing(root: HTMLElement): () => void {
  const keep = (event: InputEvent) => {
    const [target] = event.composedPath();
    const ours = target instanceof HTMLElement && root.contains(target);
    if (ours && event.inputType.startsWith("history")) event.stopPropagation();
  };
  window.addEventListener("beforeinput", keep, true);
  return () => window.removeEventListener("beforeinput", keep, true);
}

const CONTROLS = "input, select, textarea, button, [tabindex]:not(.camit-editor, .camit-popup)";

/** A click beside the controls of what is open in front takes the keyboard from none of them. */
function keepFocus(event: MouseEvent): void {
  const target = event.target as Element;
  const front = target.closest(".camit-editor, .camit-popup");
  if (front && !front.contains(target.closest(CONTROLS))) event.preventDefault();
}

function onKey(event: KeyboardEvent, store: Store): void {
  store.effort.key(event);
  const target = event.target as HTMLElement;
  const wanted = command(event, placeOf(target));
  if (wanted && perform(wanted, store, target)) event.preventDefault();
  if (isOurs(event, target)) event.stopPropagation();
}

function placeOf(target: HTMLElement): Place {
  if (target.matches("input, select, textarea")) return target.closest(".camit-editor") ? "editor" : "form";
  if (target.closest(".camit-popup")) return "popup";
  if (target.closest(".camit-source")) return "source";
  return target.closest(".camit-target") ? "words" : "elsewhere";
}

/** One view of the widget: the parts in their places, and the keyboard. */
import { useEffect, useRef } from "preact/hooks";
import { perform } from "../commands";
import { command, type Place } from "../keyboard";
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
  useEffect(() => {
    const element = root.current;
    if (!element) return;
    const theme = watchTheme(element, (found) => {
      element.dataset.camitTheme = found;
    });
    const keys = keepKeys(element);
    return () => {
      theme();
      keys();
    };
  }, []);
  return (
    <StoreContext.Provider value={store}>
      <section
        ref={root}
        class="camit"
        aria-label="Interactive translation"
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
          {store.announcement.value}
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
      {replaying ? <PlaybackControls /> : <MessageLine />}
      <ActionBar />
      <EditorPopover />
    </div>
  );
}

/** Keys we understand are ours, and so is every plain key; Ctrl+S and its like belong to the notebook. */
function isOurs(event: KeyboardEvent): boolean {
  const plain = !(event.ctrlKey || event.metaKey || event.altKey);
  return plain || command(event, placeOf(event.target as HTMLElement)) !== null;
}

/**
 * Notebooks listen for their shortcuts on the document, some before the widget sees a key (Notebook 7), some after
 * (JupyterLab). Both leave alone what happens inside an element with this attribute, so it says, key by key and before
 * anybody else looks, whether the key is ours.
 */
function keepKeys(root: HTMLElement): () => void {
  const claim = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLElement && root.contains(event.target))
      root.toggleAttribute("data-lm-suppress-shortcuts", isOurs(event));
  };
  window.addEventListener("keydown", claim, true);
  return () => window.removeEventListener("keydown", claim, true);
}

function onKey(event: KeyboardEvent, store: Store): void {
  store.effort.key(event);
  const target = event.target as HTMLElement;
  const wanted = command(event, placeOf(target));
  if (wanted && perform(wanted, store, target)) event.preventDefault();
  if (isOurs(event)) event.stopPropagation();
}

function placeOf(target: HTMLElement): Place {
  if (target.matches("input, select, textarea")) return target.closest(".camit-editor") ? "editor" : "form";
  return target.closest(".camit-target") ? "words" : "elsewhere";
}

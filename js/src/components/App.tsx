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
    return watchTheme(element, (theme) => {
      element.dataset.camitTheme = theme;
    });
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

/** Keys we understand are ours; plain keys never reach the notebook, whose shortcuts they are; Ctrl+S and its like pass. */
function onKey(event: KeyboardEvent, store: Store): void {
  store.effort.key(event);
  const target = event.target as HTMLElement;
  const wanted = command(event, placeOf(target));
  if (wanted && perform(wanted, store, target)) event.preventDefault();
  if (wanted || !(event.ctrlKey || event.metaKey || event.altKey)) event.stopPropagation();
}

function placeOf(target: HTMLElement): Place {
  if (target.matches("input, select, textarea")) return target.closest(".camit-editor") ? "editor" : "form";
  return target.closest(".camit-target") ? "words" : "elsewhere";
}

/** The last revision in place of the translation, one stage at a time, with a caption and the controls under it. */
import { useEffect, useRef } from "preact/hooks";
import type { Stage } from "../protocol";
import { capitalised, isLong } from "../words";
import { useStore } from "./context";
import { IconButton } from "./IconButton";

export const STAGES: Record<Stage["name"], string> = {
  draft: "Before",
  forward: "Forward",
  backward: "Backward",
  result: "Result",
};

/** What happens in a stage; its name stands before it already. */
export function captionOf({ name, caption }: Stage): string {
  return capitalised(caption.replace(`${STAGES[name]}: `, ""));
}

export function PlaybackLine() {
  const store = useStore();
  const words = store.playback.words.value;
  const step = store.playback.showing.value?.step;
  return (
    <p
      class="camit-target camit-playback"
      lang={store.state.overview.value.target_language}
      dir="auto"
      key={step}
    >
      {words.map((word, index) => (
        <>
          {word.space && index > 0 ? " " : ""}
          <span
            key={index}
            class="camit-word"
            data-origin={word.origin}
            data-long={isLong(word.text) || undefined}
            data-arriving={word.order !== null || undefined}
            style={{ "--order": word.order ?? 0 }}
          >
            {word.text}
          </span>
        </>
      ))}
    </p>
  );
}

export function PlaybackControls() {
  const store = useStore();
  const { playback } = store;
  const showing = playback.showing.value;
  const stage = playback.stage.value;
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    bar.current?.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    if (stage) store.messages.say(`${STAGES[stage.name]}: ${captionOf(stage)}`);
  }, [stage, store]);
  if (!showing || !stage) return null;
  return (
    <div class="camit-controls" ref={bar}>
      <IconButton
        icon={showing.playing ? "pause" : "play"}
        label={showing.playing ? "Pause" : "Play"}
        onClick={() => playback.toggle()}
      />
      <IconButton
        icon="back"
        label="Step back"
        disabled={showing.step === 0}
        onClick={() => playback.step(-1)}
      />
      <IconButton
        icon="next"
        label="Step forward"
        disabled={showing.step === playback.steps - 1}
        onClick={() => playback.step(1)}
      />
      <span class="camit-caption">
        <strong>
          {showing.step + 1}/{playback.steps} {STAGES[stage.name]}
        </strong>{" "}
        {captionOf(stage)}
      </span>
      <IconButton
        icon="close"
        label="Close replay"
        onClick={() => {
          playback.close();
          store.grab.value += 1;
        }}
      />
    </div>
  );
}

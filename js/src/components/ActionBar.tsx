/** Confirm, replay, and what the colours mean. */
import { useStore } from "./context";
import { Icon } from "./Icon";

export function ActionBar() {
  const store = useStore();
  const { status, stages } = store.sentence.value;
  const studying = store.state.learning.value.studying === store.sentence.value.row;
  const cannot = !store.editable.value || studying;
  return (
    <div class="camit-actions">
      {store.connection.value !== "offline" && (
        <button
          type="button"
          class="camit-confirm"
          aria-disabled={cannot}
          data-state={studying ? "studying" : status}
          title="Confirm the sentence and go on (Ctrl Enter)"
          onClick={() => {
            if (cannot) return;
            store.editing.settle();
            store.changes.confirm();
          }}
        >
          {studying ? "Learning…" : status === "confirmed" ? "Confirmed" : "Confirm"}
        </button>
      )}
      {store.connection.value !== "offline" && (
        <span class="camit-key" aria-hidden="true" data-idle={status === "confirmed" || undefined}>
          <kbd>Ctrl ↵</kbd>
        </span>
      )}
      <button
        type="button"
        class="camit-button"
        aria-disabled={stages.length === 0}
        title={
          stages.length === 0
            ? "Nothing to replay yet: change a word first"
            : "Play the last revision step by step"
        }
        onClick={() => {
          store.editing.settle();
          store.playback.start();
        }}
      >
        <Icon name="play" />
        Replay
      </button>
      <span class="camit-spring" />
      <span class="camit-legend" aria-hidden="true">
        <span data-origin="yours">yours</span>
        <span data-origin="changed">changed</span>
        <span data-origin="kept">kept</span>
        <span class="camit-legend-theta">copied, θ</span>
        <span class="camit-legend-recalled">recalled</span>
      </span>
    </div>
  );
}

/** The last revision laid out on one page: what the sentence was after each step. */
import { useStore } from "./context";
import { captionOf, STAGES } from "./PlaybackLine";

export function StepsView() {
  const store = useStore();
  const { stages } = store.sentence.value;
  const showing = store.playback.showing.value;
  const language = store.state.overview.value.target_language;
  if (stages.length === 0)
    return (
      <p class="camit-view camit-lead">
        Nothing to show yet. Change a word, and its steps are laid out here.
      </p>
    );
  return (
    <ol class="camit-view camit-steps">
      {stages.map((stage, index) => (
        <li key={stage.name} data-showing={showing?.step === index || undefined}>
          <button
            type="button"
            class="camit-step-name"
            title="Show this step above"
            onClick={() => store.playback.jump(index)}
          >
            {STAGES[stage.name]}
          </button>
          <div>
            <p class="camit-step-words" lang={language} dir="auto">
              {stage.words.map((word, place) => (
                <>
                  {word.space && place > 0 ? " " : ""}
                  <span key={place} data-origin={word.origin}>
                    {word.text}
                  </span>
                </>
              ))}
            </p>
            <p class="camit-footnote">{captionOf(stage)}</p>
          </div>
        </li>
      ))}
    </ol>
  );
}

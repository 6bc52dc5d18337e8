import { KEYS } from "../keyboard";
import { useStore } from "./context";
import { IconButton } from "./IconButton";
import { Popup } from "./Popup";

export function HelpOverlay() {
  const store = useStore();
  const close = () => {
    store.panel.value = null;
  };
  return (
    <Popup role="dialog" label="Keys and help" class="camit-help" onClose={close}>
      <div class="camit-help-head">
        <h3>Click the worst word. The rest mends itself.</h3>
        <IconButton icon="close" label="Close help" onClick={close} />
      </div>
      <p>
        Fix one word, and the sentence is written again around it: forward to its right, then backward to its
        left. Words you fixed stay. Confirm a sentence when it reads well: your corrections are remembered for
        the next ones.
      </p>
      <dl>
        {KEYS.map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Popup>
  );
}

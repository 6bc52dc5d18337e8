import { useSignal } from "@preact/signals";
import type { TargetedEvent } from "preact";
import type { Settings } from "../protocol";
import { useStore } from "./context";
import { Popup } from "./Popup";
import { Switch } from "./Switch";

type Changed<E extends EventTarget> = TargetedEvent<E, Event>;

/** The ways of revising, as people call them. */
const PROTOCOLS: Record<string, string> = {
  "replace-only": "only the word itself",
  unidirectional: "rightwards only",
  "unidirectional-grid": "the whole sentence anew",
  bidirectional: "both ways",
};

export function SettingsPanel() {
  const store = useStore();
  const { beam, widest_beam, stability, protocol, protocols } = store.state.settings.value;
  const refused = useSignal(false);
  /** Whatever comes of it, the field shows what is so. */
  const choose = async <N extends keyof Settings>(
    field: HTMLInputElement | HTMLSelectElement,
    name: N,
    value: Settings[N],
  ) => {
    await store.configure({ [name]: value });
    field.value = String(store.state.settings.value[name]);
  };
  const chooseBeam = ({ currentTarget: field }: Changed<HTMLInputElement>) => {
    const value = field.valueAsNumber;
    refused.value = !(Number.isInteger(value) && value >= 1 && value <= widest_beam);
    if (refused.value) field.value = String(beam);
    else void choose(field, "beam", value);
  };
  return (
    <Popup
      role="dialog"
      label="Settings"
      class="camit-settings"
      anchor="[aria-haspopup=menu]"
      onClose={() => {
        store.panel.value = null;
      }}
    >
      <h3>Settings</h3>
      <label>
        <span>
          Beam
          {refused.value ? (
            <small class="camit-refused" role="alert">
              whole numbers from 1 to {widest_beam}
            </small>
          ) : (
            <small>wider searches more, and takes longer</small>
          )}
        </span>
        <input type="number" min={1} max={widest_beam} value={beam} onChange={chooseBeam} />
      </label>
      <label>
        <span>
          Stability <small>from free rewriting to as few changes as possible</small>
        </span>
        <input
          type="range"
          min={0}
          max={1}
          step={0.05}
          value={stability}
          aria-valuetext={stability.toFixed(2)}
          onChange={({ currentTarget: field }) => choose(field, "stability", field.valueAsNumber)}
        />
      </label>
      {protocols.length > 0 && (
        <label>
          <span>
            Revision <small>how the rest is written again</small>
          </span>
          <select
            value={protocol}
            onChange={({ currentTarget: field }) => choose(field, "protocol", field.value)}
          >
            {protocols.map((name) => (
              <option key={name} value={name}>
                {PROTOCOLS[name] ?? name}
              </option>
            ))}
          </select>
        </label>
      )}
      <Switch
        label="Memory: reuse my corrections"
        on={store.state.memory.value.enabled}
        onChange={(memory) => store.configure({ memory })}
      />
      <Switch
        label="Learning: adapt to confirmed sentences"
        on={store.state.learning.value.enabled}
        onChange={(learning) => store.configure({ learning })}
      />
    </Popup>
  );
}

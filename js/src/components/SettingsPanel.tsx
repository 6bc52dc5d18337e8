import { useStore } from "./context";
import { Popup } from "./Popup";
import { Switch } from "./Switch";

export function SettingsPanel() {
  const store = useStore();
  const { beam, stability, protocol, protocols } = store.state.settings.value;
  return (
    <Popup
      role="dialog"
      label="Settings"
      class="camit-settings"
      onClose={() => {
        store.panel.value = null;
      }}
    >
      <h3>Settings</h3>
      <label>
        <span>
          Beam <small>wider searches more, and takes longer</small>
        </span>
        <input
          type="number"
          min={1}
          max={16}
          value={beam}
          onChange={(event) => {
            const value = event.currentTarget.valueAsNumber;
            if (Number.isInteger(value)) void store.configure({ beam: value });
          }}
        />
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
          onChange={(event) => store.configure({ stability: event.currentTarget.valueAsNumber })}
        />
      </label>
      {protocols.length > 0 && (
        <label>
          <span>
            Revision <small>how the rest is written again</small>
          </span>
          <select
            value={protocol}
            onChange={(event) => store.configure({ protocol: event.currentTarget.value })}
          >
            {protocols.map((name) => (
              <option key={name} value={name}>
                {name}
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

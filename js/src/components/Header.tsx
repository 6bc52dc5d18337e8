/** The top bar: where we are, how much is done, and the tools. */
import { duration, plural } from "../words";
import { useStore } from "./context";
import { IconButton } from "./IconButton";
import { Menu } from "./Menu";
import { SettingsPanel } from "./SettingsPanel";
import { Switch } from "./Switch";

export function Header() {
  const store = useStore();
  const readOnly = store.readOnly.value;
  const { can_undo, can_redo } = store.sentence.value;
  const busy = store.changes.pending.value.length > 0;
  const panel = store.panel.value;
  return (
    <div class="camit-header">
      <Progress />
      <span class="camit-spring" />
      <span class="camit-switches">
        <Switch
          label="Memory"
          on={store.state.memory.value.enabled}
          disabled={readOnly}
          onChange={(memory) => store.configure({ memory })}
        />
        <Switch
          label="Learning"
          on={store.state.learning.value.enabled}
          disabled={readOnly}
          onChange={(learning) => store.configure({ learning })}
        />
      </span>
      <span class="camit-tools">
        <IconButton
          icon="undo"
          label="Undo"
          disabled={readOnly || !(can_undo || busy)}
          onClick={() => store.changes.undo()}
        />
        <IconButton
          icon="redo"
          label="Redo"
          disabled={readOnly || !can_redo}
          onClick={() => store.changes.redo()}
        />
        <IconButton
          icon="more"
          label="Copy, export, settings"
          popup="menu"
          expanded={panel === "menu" || panel === "settings"}
          onClick={() => {
            store.panel.value = panel === "menu" || panel === "settings" ? null : "menu";
          }}
        />
        <IconButton
          icon="help"
          label="Keys and help"
          popup="dialog"
          expanded={panel === "help"}
          onClick={() => {
            store.panel.value = panel === "help" ? null : "help";
          }}
        />
        {panel === "menu" && <Menu />}
        {panel === "settings" && <SettingsPanel />}
      </span>
    </div>
  );
}

function Progress() {
  const store = useStore();
  const { rows, source_language, target_language, model } = store.state.overview.value;
  const confirmed = rows.filter((row) => row.status === "confirmed").length;
  const revisions = rows.reduce((sum, row) => sum + row.revisions, 0);
  const seconds = rows.reduce((sum, row) => sum + row.seconds, 0);
  const effort = [plural(revisions, "revision"), ...(seconds >= 1 ? [duration(seconds)] : [])].join(" · ");
  return (
    <>
      <span class="camit-pill" title={`Model: ${model}`}>
        {source_language} → {target_language}
      </span>
      {rows.length > 1 && (
        <>
          <span class="camit-place">
            Sentence {store.sentence.value.row + 1} of {rows.length}
          </span>
          <progress
            class="camit-progress"
            max={rows.length}
            value={confirmed}
            aria-label={`${confirmed} of ${rows.length} sentences confirmed`}
            title={`${confirmed} of ${rows.length} confirmed`}
          />
        </>
      )}
      <span class="camit-effort">{effort}</span>
    </>
  );
}

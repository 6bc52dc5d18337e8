import { useStore } from "./context";
import { Icon } from "./Icon";

const SAID = {
  silent:
    "The kernel does not answer. If it is busy, your change is carried out as soon as it can; if it is gone, run the cell again.",
  saved:
    "This is a saved view, with no kernel behind it: the text can be read and copied. Run the cell to go on working.",
  lost: "Not connected: the kernel that ran this widget was restarted or shut down. What you see is its last state; run the cell again to go on.",
} as const;

export function ConnectionNotice() {
  const store = useStore();
  const connection = store.connection.value;
  if (connection === "live" || connection === "offline") return null;
  return (
    <div class="camit-connection" role="status" data-connection={connection}>
      <Icon name="alert" />
      <span>{SAID[connection]}</span>
    </div>
  );
}

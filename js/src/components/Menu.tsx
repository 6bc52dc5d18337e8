import type { ExportFormat } from "../protocol";
import { useStore } from "./context";
import { Popup } from "./Popup";

const FORMATS: readonly { readonly format: ExportFormat; readonly name: string; readonly what: string }[] = [
  { format: "text", name: "Plain text", what: ".txt" },
  { format: "tsv", name: "Table", what: ".tsv" },
  { format: "tmx", name: "Translation memory", what: ".tmx" },
  { format: "xliff", name: "XLIFF", what: ".xlf" },
  { format: "html", name: "Offline page", what: ".html" },
];

export function Menu() {
  const store = useStore();
  const close = () => {
    store.panel.value = null;
  };
  return (
    <Popup
      role="menu"
      label="Copy, export, settings"
      class="camit-menu"
      anchor="[aria-haspopup=menu]"
      onClose={close}
    >
      <Item name="Copy this sentence" onClick={() => store.copySentence()} />
      <Item name="Copy all" onClick={() => store.copyDocument()} />
      {store.readOnly.value || (
        <>
          <hr />
          {FORMATS.map(({ format, name, what }) => (
            <Item key={format} name={`Export: ${name}`} what={what} onClick={() => store.export(format)} />
          ))}
          <hr />
          <Item
            name="Settings…"
            onClick={() => {
              store.panel.value = "settings";
            }}
          />
        </>
      )}
    </Popup>
  );
}

function Item({ name, what, onClick }: { name: string; what?: string; onClick: () => void }) {
  return (
    <button type="button" role="menuitem" class="camit-menuitem" tabIndex={-1} onClick={onClick}>
      {name}
      {what && <span class="camit-dim">{what}</span>}
    </button>
  );
}

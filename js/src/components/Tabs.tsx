/** Why it reads as it does: memory, attention, learning, steps. */
import type { Tab } from "../store";
import { AttentionView } from "./AttentionView";
import { useStore } from "./context";
import { LearningView } from "./LearningView";
import { MemoryView } from "./MemoryView";
import { StepsView } from "./StepsView";

const TABS: readonly { readonly tab: Tab; readonly name: string; readonly View: () => preact.JSX.Element }[] =
  [
    { tab: "memory", name: "Memory", View: MemoryView },
    { tab: "attention", name: "Attention", View: AttentionView },
    { tab: "learning", name: "Learning", View: LearningView },
    { tab: "steps", name: "Steps", View: StepsView },
  ];

export function Tabs() {
  const store = useStore();
  const current = TABS.find(({ tab }) => tab === store.tab.value);
  const step = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const now = TABS.findIndex(({ tab }) => tab === store.tab.value);
    const next = TABS.at((now + by) % TABS.length);
    if (!next) return;
    store.tab.value = next.tab;
    const list = event.currentTarget as HTMLElement;
    list.querySelector<HTMLElement>(`#${store.id}-tab-${next.tab}`)?.focus();
  };
  return (
    <div class="camit-why">
      <div role="tablist" class="camit-tabs" aria-label="Why it reads as it does" onKeyDown={step}>
        {TABS.map(({ tab, name }) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`${store.id}-tab-${tab}`}
            class="camit-tab"
            data-name={name}
            aria-selected={tab === store.tab.value}
            aria-controls={`${store.id}-panel`}
            tabIndex={tab === store.tab.value ? 0 : -1}
            onClick={() => {
              store.tab.value = tab;
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${store.id}-panel`}
        aria-labelledby={`${store.id}-tab-${store.tab.value}`}
        class="camit-panel"
      >
        {current && <current.View />}
      </div>
    </div>
  );
}

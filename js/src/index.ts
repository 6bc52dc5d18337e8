/** The bundle: `render` is what anywidget calls for each view, `mount` what an offline page calls, `show` what any other
 * host may call. No state lives here. */
import type { RenderProps } from "@anywidget/types";
import { render as draw, h } from "preact";
import { App } from "./components/App";
import type { Host } from "./host";
import { Line } from "./jupyter";
import { Kernel } from "./kernel";
import { Offline, type Page } from "./offline";
import { Store } from "./store";

function show(host: Host, element: HTMLElement): () => void {
  const store = new Store(host);
  draw(h(App, { store }), element);
  return () => {
    draw(null, element);
    store.dispose();
  };
}

function render({ model, el }: RenderProps): () => void {
  return show(new Kernel(model as ConstructorParameters<typeof Kernel>[0], new Line(model, el)), el);
}

function mount(element: HTMLElement, page: Page): () => void {
  return show(new Offline(page), element);
}

export default { render, mount, show };

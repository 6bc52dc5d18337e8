/** Light or dark? Every host says it differently, so ask the page itself: how bright is what the widget stands on? */

export type Theme = "light" | "dark";

function channels(color: string): readonly number[] {
  return color.match(/[\d.]+/g)?.map(Number) ?? [];
}

/** Relative brightness of an opaque CSS colour, 0 to 1; null for a transparent one. */
export function brightness(color: string): number | null {
  const [red = 0, green = 0, blue = 0, alpha = 1] = channels(color);
  if (color === "" || color === "transparent" || alpha < 0.5) return null;
  const unit = color.startsWith("color(") ? 1 : 255;
  return (0.299 * red + 0.587 * green + 0.114 * blue) / unit;
}

export function themeOf(element: Element): Theme {
  for (let node: Element | null = element.parentElement; node; node = node.parentElement) {
    const bright = brightness(getComputedStyle(node).backgroundColor);
    if (bright !== null) return bright < 0.5 ? "dark" : "light";
  }
  // A page that paints nothing is white, unless it leaves the choice to the reader's system.
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  const dark = typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
  return dark && scheme.includes("dark") ? "dark" : "light";
}

/** Call back now and whenever the host changes its theme; returns how to stop. */
export function watchTheme(element: Element, found: (theme: Theme) => void): () => void {
  const look = () => found(themeOf(element));
  const observer = new MutationObserver(() => requestAnimationFrame(look));
  for (const node of [document.documentElement, document.body])
    observer.observe(node, {
      attributes: true,
      attributeFilter: ["class", "style", "data-jp-theme-light", "data-theme"],
    });
  // JupyterLab swaps style sheets after it has set the attribute.
  observer.observe(document.head, { childList: true });
  const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
  query?.addEventListener("change", look);
  const first = requestAnimationFrame(look);
  return () => {
    cancelAnimationFrame(first);
    observer.disconnect();
    query?.removeEventListener("change", look);
  };
}

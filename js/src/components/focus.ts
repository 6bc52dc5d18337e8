/** Where the keyboard is; a widget can live in a shadow tree, where `document.activeElement` is its host. */
export function focusBeside(element: Element): Element | null {
  return (element.getRootNode() as Document | ShadowRoot).activeElement;
}

/** What had the keyboard is gone, and nobody has it. */
export function focusIsLost(element: Element): boolean {
  const now = focusBeside(element);
  return now === null || now === document.body;
}

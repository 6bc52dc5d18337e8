/** Keys and clicks since the last change: what a correction cost, for the effort rates of the field. */
import type { Effort as Spent } from "./protocol";

const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta"]);

export class Effort {
  #keystrokes = 0;
  #mouse = 0;

  key(event: { readonly key: string }): void {
    if (!MODIFIERS.has(event.key)) this.#keystrokes += 1;
  }

  click(): void {
    this.#mouse += 1;
  }

  /** What was spent so far; counting starts anew. */
  spent(): Spent {
    const spent = { keystrokes: this.#keystrokes, mouse: this.#mouse };
    this.#keystrokes = 0;
    this.#mouse = 0;
    return spent;
  }
}

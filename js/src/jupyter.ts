/**
 * What a notebook knows about the line to the kernel, beyond what anywidget passes on. JupyterLab, Notebook 7 and Voila say it
 * on the element of a view and in their widget manager; where a host has neither, nothing is known and nothing is said.
 */
import type { AnyModel } from "@anywidget/types";

/** A signal of Lumino, or what a host puts in its place. */
interface Told<T> {
  connect?(slot: (sender: unknown, value: T) => void): unknown;
  disconnect?(slot: (sender: unknown, value: T) => void): unknown;
}

interface Session {
  readonly kernelChanged?: Told<unknown>;
  readonly statusChanged?: Told<string>;
}

interface Manager {
  readonly context?: { readonly sessionContext?: Session };
  /** Null once it is shut down. */
  readonly kernel?: Session | null;
}

const ENDINGS = new Set(["restarting", "autorestarting", "terminating", "dead"]);

export class Line {
  readonly #manager: Manager;
  readonly #view: Element;

  constructor(model: Pick<AnyModel, "widget_manager">, view: Element) {
    this.#manager = (model.widget_manager ?? {}) as unknown as Manager;
    this.#view = view;
  }

  /** The host says that nobody is at the other end: a notebook that was saved and reopened, a kernel that was shut down. */
  get cut(): boolean {
    return this.#gone || this.#view.closest(".jupyter-widgets-disconnected") !== null;
  }

  get #gone(): boolean {
    try {
      return "kernel" in this.#manager && !this.#manager.kernel;
    } catch {
      return true; // the manager of a notebook that is being closed
    }
  }

  /** Call back when something happened to the kernel; returns how to stop. */
  watch(happened: () => void): () => void {
    const session = this.#manager.context?.sessionContext ?? this.#manager.kernel;
    const status = (_sender: unknown, now: string) => {
      if (ENDINGS.has(now)) happened();
    };
    session?.kernelChanged?.connect?.(happened);
    session?.statusChanged?.connect?.(status);
    return () => {
      session?.kernelChanged?.disconnect?.(happened);
      session?.statusChanged?.disconnect?.(status);
    };
  }
}

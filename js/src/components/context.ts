import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Store } from "../store";

export const StoreContext = createContext<Store | null>(null);

/** The store of the view this component is part of. */
export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("a component of the widget was used outside its App");
  return store;
}

// Whether the page is as narrow as a telephone.
import { useSyncExternalStore } from "react";

const NARROW = "(max-width: 45rem)";

function subscribe(changed: () => void) {
  const query = matchMedia(NARROW);
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}

export const useNarrow = () => useSyncExternalStore(subscribe, () => matchMedia(NARROW).matches);

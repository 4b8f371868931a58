// The page and its state are in the fragment: the gateway serves one page, and a fragment is sent to no server.
import { useCallback, useSyncExternalStore } from "react";
import type { BaseLocationHook, BaseSearchHook } from "wouter";

const CHANGED = "weir:location";

function subscribe(changed: () => void) {
  addEventListener("hashchange", changed);
  addEventListener(CHANGED, changed);
  return () => {
    removeEventListener("hashchange", changed);
    removeEventListener(CHANGED, changed);
  };
}

function path() {
  return `/${location.hash.replace(/^#?\/?/, "").split("?")[0] ?? ""}`;
}

function query() {
  return location.hash.split("?").slice(1).join("?");
}

export function navigate(to: string, options?: { replace?: boolean }) {
  const hash = to.startsWith("?") ? `#${path()}${to === "?" ? "" : to}` : `#${to}`;
  if (options?.replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  dispatchEvent(new Event(CHANGED));
}

export const useHashPath: BaseLocationHook = Object.assign(
  () => [useSyncExternalStore(subscribe, path), navigate] as [string, typeof navigate],
  { hrefs: (href: string) => `#${href}` },
);

export const useHashSearch: BaseSearchHook = () => useSyncExternalStore(subscribe, query);

/** One value of the page's state. Setting it to an empty text removes it from the address. */
export function useAddressValue(name: string): [string, (value: string, options?: { push?: boolean }) => void] {
  const text = useSyncExternalStore(subscribe, query);
  const value = new URLSearchParams(text).get(name) ?? "";
  const set = useCallback(
    (next: string, options?: { push?: boolean }) => setAddressValues({ [name]: next }, options),
    [name],
  );
  return [value, set];
}

export function setAddressValues(values: Record<string, string>, options?: { push?: boolean }) {
  const all = new URLSearchParams(query());
  for (const [name, value] of Object.entries(values)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  navigate(`?${all}`, { replace: !options?.push });
}

/** Returns whether the address is a link that signs in. */
export const hasSecret = () => /^#(token|link)=/.test(location.hash);

/** Takes a value such as `#token=…` out of the address, to keep it out of the history and of copied links. */
export function takeFragmentValue(name: string): string | null {
  const fragment = location.hash.replace(/^#/, "");
  if (!fragment.startsWith(`${name}=`)) return null;
  history.replaceState(null, "", location.pathname);
  const value = fragment.slice(name.length + 1);
  try {
    return decodeURIComponent(value);
  } catch {
    // It is not an encoded text, so it is taken as it is.
    return value;
  }
}

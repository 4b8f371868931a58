// What happens now: one stream of events while a page is looked at. What an event says is another is read again.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import type { components } from "./api/schema";
import { currentToken, mayDo } from "./session";

export type CallFigures = components["schemas"]["CallFigures"];

/** The time before a stream that ended is opened again. */
const AGAIN_MS = 5_000;
/** The lists that an event makes old, by their query keys. */
const READ_AGAIN: Record<string, string[]> = {
  draft: ["drafts", "draft", "contracts", "contract"],
  drift: ["collections"],
  plugin: ["plugins", "contracts"],
  upstream: ["upstreams"],
  key: ["keys"],
  config: ["configuration", "connections", "upstreams"],
};

let figures: CallFigures | null = null;
const listeners = new Set<() => void>();

function setFigures(next: CallFigures | null) {
  figures = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The figures of the last second; null while no stream is open. */
export const useLastSecond = () => useSyncExternalStore(subscribe, () => figures);

/** Splits what came into whole events, each with its name and data, and what is left of the next one. */
export function splitEvents(text: string): { events: [string, string][]; rest: string } {
  const parts = text.split("\n\n");
  const rest = parts.pop() ?? "";
  const line = (event: string, name: string) => event.split("\n").find((one) => one.startsWith(`${name}:`))?.slice(name.length + 1).trim();
  const events = parts.flatMap((event): [string, string][] => {
    const name = line(event, "event");
    return name ? [[name, line(event, "data") ?? ""]] : [];
  });
  return { events, rest };
}

async function read(signal: AbortSignal, hear: (name: string, data: string) => void) {
  const headers = { Authorization: `Bearer ${currentToken() ?? ""}` };
  const response = await fetch("/v1/events", { headers, signal });
  if (!response.ok || !response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const { events, rest } = splitEvents(text + value);
    text = rest;
    for (const [name, data] of events) hear(name, data);
  }
}

/** Follows events while this tab is seen: a browser has few connections for all tabs of an address. An auditor has no events. */
export function useLiveEvents() {
  const client = useQueryClient();
  const isAllowed = mayDo("viewer");
  useEffect(() => {
    if (!isAllowed) return;
    let stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hear = (name: string, data: string) => {
      if (name === "stats") setFigures(JSON.parse(data) as CallFigures);
      for (const key of READ_AGAIN[name] ?? []) void client.invalidateQueries({ queryKey: [key] });
    };
    const follow = () => {
      const { signal } = stop;
      const over = () => {
        setFigures(null);
        if (!signal.aborted) timer = setTimeout(follow, AGAIN_MS);
      };
      read(signal, hear).then(over, over);
    };
    const change = () => {
      clearTimeout(timer);
      stop.abort();
      stop = new AbortController();
      if (!document.hidden) follow();
    };
    change();
    document.addEventListener("visibilitychange", change);
    return () => {
      document.removeEventListener("visibilitychange", change);
      clearTimeout(timer);
      stop.abort();
    };
  }, [client, isAllowed]);
}

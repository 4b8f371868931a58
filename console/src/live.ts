// What happens now: one stream of events while a page is open. What an event reports as changed is read again.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { components } from "./api/schema";
import { currentToken, mayDo } from "./session";

export type StatsView = components["schemas"]["StatsView"];
export type StatsEvent = components["schemas"]["StatsEvent"];

/** The time that figures are shown of, in seconds: as much as the gateway keeps. */
export const STATS_S = 900;
export const STATS_KEY = ["stats"];
/** The time before an ended stream is reopened. */
const AGAIN_MS = 5_000;
/** Events come each second: a stream that is silent for this long is gone. */
const SILENT_MS = 10_000;
/** The lists that an event makes old, by their query keys. */
const READ_AGAIN: Record<string, string[]> = {
  draft: ["drafts", "draft", "contracts", "contract"],
  contract: ["contracts", "contract", "collections", "tools", "served-versions"],
  drift: ["collections"],
  plugin: ["plugins", "contracts"],
  upstream: ["upstreams"],
  key: ["keys"],
  config: ["configuration", "connections", "upstreams"],
};

const ALL_FOLLOWED = [...new Set(Object.values(READ_AGAIN).flat()), ...STATS_KEY];

let isOpen = false;

/** Returns whether events report when a list is to be read again. */
export const isFollowing = () => isOpen;

/** Adds the figures of an event to those read earlier. */
export function addFigures(before: StatsView, { at_ms, since_start, ...last }: StatsEvent): StatsView {
  const { seconds, calls, errors, p50_ms, p99_ms } = last;
  const kept = before.points.filter((point) => point.at_ms > at_ms - STATS_S * 1_000);
  return { ...last, since_start, points: [...kept, { at_ms, seconds, calls, errors, p50_ms, p99_ms }] };
}

/** Splits the received text into whole events, each with its name and data, and the beginning of the next one. */
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

/** Fails if nothing comes in time: the end of a stream that is cut off silently is never reported. */
export function inTime<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silent = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error("no event")), SILENT_MS);
  });
  return Promise.race([promise, silent]).finally(() => clearTimeout(timer));
}

async function read(signal: AbortSignal, hear: (name: string, data: string) => void) {
  const headers = { Authorization: `Bearer ${currentToken() ?? ""}` };
  // Calls are shown nowhere as they end.
  const response = await fetch("/v1/events?calls=false", { headers, signal });
  if (!response.ok || !response.body) return;
  isOpen = true;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await inTime(reader.read());
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
    const readAgain = (keys: string[]) => {
      for (const key of keys) void client.invalidateQueries({ queryKey: [key] });
    };
    const hear = (name: string, data: string) => {
      if (name === "stats") {
        const figures = JSON.parse(data) as StatsEvent;
        // A node of an older release leaves them out.
        if (figures.since_start) client.setQueryData<StatsView>(STATS_KEY, (before) => before && addFigures(before, figures));
      }
      // The missed event may have been any of these.
      readAgain(name === "missed" ? ALL_FOLLOWED : (READ_AGAIN[name] ?? []));
    };
    const follow = () => {
      const { signal } = stop;
      const over = () => {
        if (signal.aborted) return;
        // A stream that went silent frees its place.
        stop.abort();
        stop = new AbortController();
        const wasOpen = isOpen;
        isOpen = false;
        // From now on lists are read often.
        if (wasOpen) readAgain(ALL_FOLLOWED);
        timer = setTimeout(follow, AGAIN_MS);
      };
      read(signal, hear).then(over, over);
    };
    const change = () => {
      clearTimeout(timer);
      stop.abort();
      isOpen = false;
      stop = new AbortController();
      if (!document.hidden) follow();
    };
    change();
    document.addEventListener("visibilitychange", change);
    return () => {
      document.removeEventListener("visibilitychange", change);
      clearTimeout(timer);
      stop.abort();
      isOpen = false;
    };
  }, [client, isAllowed]);
}

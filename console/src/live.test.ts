import { expect, test, vi } from "vitest";
import { addFigures, inTime, splitEvents, STATS_S, type StatsEvent, type StatsView } from "./live";

test("events are whole before they are read", () => {
  const first = splitEvents('event: stats\ndata: {"calls":1}\n\n:\n\nevent: ke');
  expect(first.events).toEqual([["stats", '{"calls":1}']]);
  expect(splitEvents(`${first.rest}y\ndata: {}\n\n`)).toEqual({ events: [["key", "{}"]], rest: "" });
});

test("the figures of an event are added to those before, and what is too old is left out", () => {
  const point = (at_ms: number) => ({ at_ms, seconds: 1, calls: 1, errors: 0, p50_ms: null, p99_ms: null });
  const last = { seconds: 1, calls: 7, errors: 2, p50_ms: 0.5, p99_ms: 2, in_flight: 3 };
  const before = { ...last, calls: 1, points: [point(1_000), point(2_000)] } as StatsView;
  const event = { ...last, at_ms: 1_000 + STATS_S * 1_000, since_start: { served_tools: 4 } } as StatsEvent;
  const { points, since_start, calls } = addFigures(before, event);
  expect(points).toEqual([point(2_000), { at_ms: event.at_ms, seconds: 1, calls: 7, errors: 2, p50_ms: 0.5, p99_ms: 2 }]);
  expect([since_start.served_tools, calls]).toEqual([4, 7]);
});

test("a stream that is silent for ten seconds has ended", async () => {
  vi.useFakeTimers();
  try {
    const silent = expect(inTime(new Promise<string>(() => {}))).rejects.toThrow("no event");
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await inTime(Promise.resolve("an event"))).toBe("an event");
    await vi.advanceTimersByTimeAsync(1_000);
    await silent;
  } finally {
    vi.useRealTimers();
  }
});

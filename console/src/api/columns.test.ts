import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SETTLE_MS } from "./settle";

let previews: { settings: unknown; signal: AbortSignal }[] = [];

vi.stubGlobal("location", { origin: "http://weir.test" });
vi.stubGlobal("sessionStorage", { setItem: () => undefined });
// The client takes it when it is made.
vi.stubGlobal("fetch", async (asked: string | Request) => {
  if (!(asked instanceof Request)) return Response.json({ token: "weirses_1", role: "editor", name: "ann" });
  const { source } = JSON.parse(await asked.clone().text());
  previews.push({ settings: JSON.parse(source).collections.c.settings, signal: asked.signal });
  return new Promise(() => undefined);
});
const { columnsQuery } = await import("./sources");
const { signIn } = await import("../session");

beforeEach(async () => {
  previews = [];
  vi.useFakeTimers();
  await signIn("weiradm_key");
});

afterEach(() => {
  vi.useRealTimers();
});

const typed = (path: string) => columnsQuery({ adapter: "sheet", settings: { path } });

test("a source that is typed is described once, when it has settled", async () => {
  const observer = new QueryObserver(new QueryClient(), typed("t"));
  observer.subscribe(() => undefined);
  for (const path of ["ti", "tic", "tick"]) {
    await vi.advanceTimersByTimeAsync(SETTLE_MS - 50);
    observer.setOptions(typed(path));
  }
  expect(previews).toEqual([]);
  await vi.advanceTimersByTimeAsync(SETTLE_MS);
  expect(previews.map(({ settings }) => settings)).toEqual([{ path: "tick" }]);
  observer.setOptions(typed("ticke"));
  await vi.advanceTimersByTimeAsync(SETTLE_MS);
  // A description that is no longer needed is aborted.
  expect(previews.map(({ signal }) => signal.aborted)).toEqual([true, false]);
});

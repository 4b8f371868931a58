import { beforeEach, expect, test, vi } from "vitest";
import { WorkKeeper } from "./kept-work";

const BASE = { text: "a: 1\n", etag: '"1"' };
let kept: Map<string, string>;

beforeEach(() => {
  kept = new Map();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => void kept.set(key, text),
    removeItem: (key: string) => void kept.delete(key),
  });
});

test("work is kept only for its admin and its contract", () => {
  new WorkKeeper("ann", "desk").keep("a: 2\n", BASE);
  expect(new WorkKeeper("ann", "desk").read()).toEqual({ text: "a: 2\n", base: BASE });
  expect(new WorkKeeper("bob", "desk").read()).toBeNull();
  expect(new WorkKeeper("ann", "shop").read()).toBeNull();
  expect(new WorkKeeper("ann,desk", "").read()).toBeNull();
});

test("a tab without work leaves what another tab keeps", () => {
  const [first, second] = [new WorkKeeper("ann", "desk"), new WorkKeeper("ann", "desk")];
  expect([first.read(), second.read()]).toEqual([null, null]);
  second.keep("a: 2\n", BASE);
  first.keep(BASE.text, BASE);
  expect(new WorkKeeper("ann", "desk").read()?.text).toBe("a: 2\n");
  first.keep("a: 3\n", BASE);
  second.keep("a: 4\n", BASE);
  first.keep(BASE.text, BASE);
  expect(new WorkKeeper("ann", "desk").read()?.text).toBe("a: 4\n");
});

test("work that was submitted or undone is kept no longer", () => {
  const first = new WorkKeeper("ann", "desk");
  first.keep("a: 2\n", BASE);
  first.keep("a: 2\n", { text: "a: 2\n", etag: '"2"' });
  expect(kept.size).toBe(0);
  first.keep("a: 3\n", BASE);
  const later = new WorkKeeper("ann", "desk");
  later.read();
  later.keep(BASE.text, BASE);
  expect(kept.size).toBe(0);
});

test("neither another program's data nor a browser without storage yields work", () => {
  for (const text of ["{", "1", '{"text":"a"}', '{"text":"a","base":{"text":"b"}}']) {
    vi.stubGlobal("localStorage", { getItem: () => text });
    expect(new WorkKeeper("ann", "desk").read()).toBeNull();
  }
  const refuse = () => {
    throw new Error("no storage");
  };
  vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse, removeItem: refuse });
  const keeper = new WorkKeeper("ann", "desk");
  expect(keeper.read()).toBeNull();
  keeper.keep("a: 2\n", BASE);
  keeper.keep(BASE.text, BASE);
});

import { expect, test } from "vitest";
import { NOT_KEPT, readKeep } from "./keep-choice";

const found = { version: "1.0.0", shim: {}, missing: null, needs_shim: false, beside: [] };
const kept = { ...NOT_KEPT, isKept: true };

test("a version is kept with its last day, and by the shim that was pasted", () => {
  expect(readKeep({ ...kept, isKept: false, lastDay: "2099-12-31" }, found)).toEqual({ body: {} });
  expect(readKeep(kept, found)).toEqual({ body: { keep: true } });
  expect(readKeep({ ...kept, lastDay: "2099-12-31" }, found)).toEqual({ body: { keep: true, sunset: "2099-12-31" } });
  expect(readKeep({ ...kept, shim: ' {"tools": {}} ' }, found)).toEqual({ body: { keep: true, shim: { tools: {} } } });
});

test("a text that is not a shim has a fault, and a plugin's version needs a shim", () => {
  for (const shim of ["{", "[]", "7", "null"]) expect(readKeep({ ...kept, shim }, found), shim).toMatchObject({ fault: expect.stringMatching(/^is /) });
  const none = { ...found, shim: null, missing: "'echo' /properties/a: it is gone" };
  expect(readKeep(kept, none)).toEqual({ body: { keep: true } });
  expect(readKeep(kept, { ...none, needs_shim: true }).fault).toContain("a shim is needed");
  expect(readKeep({ ...kept, shim: "{}" }, { ...none, needs_shim: true }).body).toEqual({ keep: true, shim: {} });
});

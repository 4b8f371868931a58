import { expect, test } from "vitest";
import { lifeOf, rotatedKey } from "./key-life";

const DAY_MS = 86_400_000;

test("the next key lives as long as the one before", () => {
  expect(lifeOf({ created_ms: 5, expires_ms: null })).toBe("");
  expect(lifeOf({ created_ms: 5, expires_ms: 5 + 90 * DAY_MS })).toBe("90");
  expect(lifeOf({ created_ms: 5, expires_ms: 5 + 31 * DAY_MS })).toBe("90");
  expect(lifeOf({ created_ms: 5, expires_ms: 5 + 4000 * DAY_MS })).toBe("365");
});

test("the next key may what the one before may, and no more", () => {
  const limits = { rate: "60/min", quota_day: 5, quota_month: null, tools: { find: "1/s" } };
  const old = { agent: "ann", tenant: "desk", access: { contracts: ["desk"], tools: [] }, view: "small", limits };
  expect(rotatedKey(old, "7")).toEqual({ ...old, expires_in_s: 7 * 86_400 });
  expect(rotatedKey({ ...old, access: null, view: null }, "")).toEqual({ agent: "ann", tenant: "desk", limits });
});

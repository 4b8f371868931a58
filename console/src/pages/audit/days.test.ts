import { expect, test } from "vitest";
import { dayAfter, dayOf } from "./days";

test("the last day is among the days", () => {
  expect(dayAfter("2026-11-28")).toBe("2026-11-29");
  expect(dayAfter("2026-12-31")).toBe("2027-01-01");
});

test("an incomplete day is not sent to a gateway", () => {
  for (const text of ["", "2026", "2026-1", "2026-13-40", "2h"]) expect(dayAfter(text)).toBeUndefined();
  expect(dayOf("2h")).toBe("");
  expect(dayOf("2026-11-28T10:00:00Z")).toBe("2026-11-28");
});

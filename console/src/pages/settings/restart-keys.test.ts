import { expect, test } from "vitest";
import { needsRestart } from "./restart-keys";

test("whole sections and single keys wait for the next start", () => {
  expect(needsRestart("audit", "sync")).toBe(true);
  expect(needsRestart("http", "listen")).toBe(true);
  expect(needsRestart("http", "public_url")).toBe(false);
  expect(needsRestart("views", "small")).toBe(false);
});

import { expect, test } from "vitest";
import { decisionWords, passedPolicies, recordedDecision } from "./policy";

test("the decision of a record is read, and nothing else is a decision", () => {
  expect(recordedDecision({ decision: "audited", policies: ["little"] })).toEqual({ decision: "audited", policies: ["little"] });
  expect(recordedDecision({ decision: "denied" })).toEqual({ decision: "denied", policies: [] });
  for (const other of [undefined, null, "denied", [], { decision: "allowed" }]) expect(recordedDecision(other)).toBeNull();
});

test("a denial and what would be one are kept apart", () => {
  expect(decisionWords({ decision: "denied", policies: ["little"] })).toMatchObject({ word: "denied", tone: "bad" });
  const audited = decisionWords({ decision: "audited", policies: ["little", "late"] });
  expect(audited).toMatchObject({ word: "would be denied", tone: "warn" });
  expect(audited.effect).toBe("These policies deny it: it went on, since policies are in audit mode.");
  expect(decisionWords({ decision: "denied", policies: [] }).effect).toMatch(/^No policy permits this call/);
});

test("a call is shown as allowed where policies are in force and it came to them", () => {
  expect(passedPolicies({ is_error: false, policy: null }, 2)).toBe(true);
  expect(passedPolicies({ is_error: false, policy: null }, 0)).toBe(false);
  expect(passedPolicies({ is_error: true, policy: null }, 2)).toBe(false);
  expect(passedPolicies({ is_error: false, policy: { decision: "audited", policies: [] } }, 2)).toBe(false);
});

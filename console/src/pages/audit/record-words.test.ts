import { expect, test } from "vitest";
import { utcTime } from "../../parts/words";
import { recordSentence } from "./record-words";

const record = { seq: 1, time: "2026-11-28T02:32:50.123456Z", hash: "", prev: "" };

test("a record is a sentence with who, what, which version, and the outcome", () => {
  const call = { ...record, kind: "call", agent: "support-bot", tool: "list_orders", contract: "orders@2.0.0", outcome: "refused", code: "invalid_arguments" };
  expect(recordSentence(call)).toBe("support-bot called list_orders (orders@2.0.0): refused, invalid_arguments");
  expect(recordSentence({ ...call, reason: "status: not_in_enum" })).toContain(": refused, invalid_arguments, status: not_in_enum");
  expect(recordSentence({ ...record, kind: "call", agent: "a", tool: "t", outcome: "ok" })).toBe("a called t: ok");
  expect(recordSentence({ ...record, kind: "intent", agent: "a", tool: "t" })).toBe("a is about to write with t");
  expect(recordSentence({ ...record, kind: "refused", what: "access", agent: "a", reason: "no such endpoint" })).toBe(
    "A request of a was turned away before it became a call: access, no such endpoint",
  );
  expect(recordSentence({ ...record, kind: "admin", by: "admin:first", act: "draft_publish", subject: "desk" })).toBe("draft publish desk, by admin:first");
});

test("a time has its zone", () => {
  expect(utcTime(Date.parse(record.time))).toBe("2026-11-28 02:32:50 UTC");
  expect(utcTime(Number.NaN)).toBe("");
});

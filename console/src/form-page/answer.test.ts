import { expect, test } from "vitest";
import { readAnswer, wordsOf } from "./answer";

test("records are a table with a next page, and none is a table too", () => {
  expect(readAnswer(true, '{"records": [{"a": 1}, {"b": 2}], "next": "x"}')).toEqual({ kind: "table", table: { columns: ["a", "b"], rows: [{ a: 1 }, { b: 2 }] }, next: "x", facts: [] });
  expect(readAnswer(true, '{"records": [], "next": null}')).toEqual({ kind: "table", table: { columns: [], rows: [] }, next: null, facts: [] });
});

test("counts of skipped and all records, and whether there is more, are read along with the records", () => {
  const answer = readAnswer(true, '{"records": [{"a": 1}], "next": null, "skipped": 2, "total": 9007199254740993, "more": true}');
  const facts = answer.kind === "table" ? answer.facts : [];
  expect(facts.map(([name, value]) => [name, wordsOf(value)])).toEqual([
    ["skipped", "2"],
    ["total", "9007199254740993"],
    ["more", "Yes"],
  ]);
});

test("one record is read member by member", () => {
  expect(readAnswer(true, '{"status": "created", "record": {"id": 7}}')).toEqual({ kind: "facts", status: "created", facts: [["id", 7]] });
  expect(readAnswer(true, '{"count": 3}')).toEqual({ kind: "facts", status: "", facts: [["count", 3]] });
});

test("a refusal is at its fields in the gateway's words", () => {
  const problem = { detail: "arguments are not valid\n/iata: is required\nmore", errors: [{ path: "/iata", reason: "missing_required" }] };
  const answer = readAnswer(false, JSON.stringify(problem));
  expect(answer).toMatchObject({ kind: "refused", message: "Some values are missing or not allowed." });
  expect(answer.kind === "refused" && answer.faults.get("/iata")?.text).toBe("is required");
  expect(readAnswer(false, '{"detail": "not found: no such airport"}')).toMatchObject({ kind: "refused", message: "not found: no such airport" });
});

test.each([
  [null, ""],
  [true, "Yes"],
  ["a", "a"],
  [{ a: [1] }, '{"a":[1]}'],
])("%j is read as %j", (value, words) => {
  expect(wordsOf(value)).toBe(words);
});

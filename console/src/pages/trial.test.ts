import { expect, test } from "vitest";
import type { Tried } from "../api/shapes";
import { cellText } from "../schema/records";
import { faultsOf, readTried, resultTable, trialBody } from "./trial";

const refused = {
  is_error: true,
  text: 'Invalid arguments; nothing was done. Repair this and call again:\n/status: must be one of open, closed. Did you mean "open"?\n/subjekt: is not an argument of this tool.',
  structured_content: {
    code: "invalid_arguments",
    call_id: "c_1",
    errors: [
      { path: "/status", reason: "not_in_enum", suggestion: "open" },
      { path: "/subjekt", reason: "unknown_argument", suggestion: "subject" },
      { path: "/n", reason: "out_of_range", constraint: { minimum: 1 } },
    ],
  },
} as unknown as Tried;

test("faults have the gateway's words, and only values are suggested", () => {
  const faults = faultsOf(refused);
  expect(faults.get("/status")).toEqual({ text: 'must be one of open, closed. Did you mean "open"?', suggestion: "open" });
  expect(faults.get("/subjekt")?.suggestion).toBeUndefined();
  expect(faults.get("/n")?.text).toBe("is out of range (minimum: 1)");
});

test("the result of an error is not a table", () => {
  expect(resultTable({ code: "x", errors: [] })).toBeNull();
});

test("records become rows under all their names", () => {
  expect(resultTable({ records: [{ a: 1 }, { b: null }], next: null })).toEqual({ columns: ["a", "b"], rows: [{ a: 1 }, { b: null }] });
  expect(resultTable({ status: "created", record: { id: 1 } })).toEqual({ columns: ["id"], rows: [{ id: 1 }] });
});

test("a result keeps every digit", () => {
  const { structured_content } = readTried('{"structured_content":{"ids":[9007199254740993],"records":[{"id":9007199254740993}]}}');
  const table = resultTable(structured_content as never);
  expect(cellText(table?.rows[0]?.id)).toBe("9007199254740993");
  expect(table?.columns).toEqual(["id"]);
});

test("raw arguments keep every digit", () => {
  const body = trialBody("t", "local", true, '{"id":9007199254740993}');
  expect(body).toBe('{"tool":"t","agent":"local","dry_run":true,"arguments":{"id":9007199254740993}}');
});

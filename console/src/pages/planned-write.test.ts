import { expect, test } from "vitest";
import { changedRows, planState } from "./planned-write";

test("the columns that change come first", () => {
  const rows = changedRows({ before: { id: 7, status: "open", note: null }, after: { id: 7, status: "closed", note: null }, changed: ["status"] });
  expect(rows).toEqual([
    { column: "status", before: '"open"', after: '"closed"', isChanged: true },
    { column: "id", before: "7", after: "7", isChanged: false },
    { column: "note", before: "null", after: "null", isChanged: false },
  ]);
});

test("a record that is made or removed has one side", () => {
  expect(changedRows({ before: null, after: { id: 7 }, changed: ["id"] })).toEqual([{ column: "id", before: "", after: "7", isChanged: true }]);
  expect(changedRows({ before: { id: 7 }, after: null, changed: ["id"] })).toEqual([{ column: "id", before: "7", after: "", isChanged: true }]);
  expect(changedRows({ before: null, after: null, changed: [] })).toEqual([]);
});

test("what has expired does not wait", () => {
  expect(planState({ status: "pending", is_expired: true }).word).toBe("expired");
  expect(planState({ status: "pending", is_expired: false }).word).toBe("waits");
});

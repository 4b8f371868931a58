import { expect, test } from "vitest";
import type { Json } from "../api/shapes";
import { columnAt, distinctValues } from "./column-values";

const root: Json = {
  collections: { orders: { adapter: "sheet", settings: { connection: "files", path: "orders.csv" } } },
  tools: [{ tool: "list_orders", verb: "list", collection: "orders", fields: [{ name: "state", column: "status", type: "dropdown" }, { name: "inner", type: "record", fields: [{ name: "x" }] }] }],
};

test("a choice has the column of its field, and the source of its tool", () => {
  expect(columnAt(root, ["tools", 0, "fields", 0, "choices"])).toEqual({ connection: "files", source: "orders.csv", column: "status" });
  expect(columnAt(root, ["tools", 0, "fields", 1, "fields", 0, "choices"])).toBeNull();
  expect(columnAt({ fields: [] }, ["fields", 0, "choices"])).toBeNull();
});

test("each value is taken once, without empty cells", () => {
  expect(distinctValues([{ status: "open" }, { status: "" }, { status: null }, { status: "closed" }, { status: "open" }, { status: 3 }], "status")).toEqual(["open", "closed", "3"]);
});

import { expect, test } from "vitest";
import type { FormKey, FormView } from "../api/form";
import type { Json } from "../api/shapes";
import { columnsOf } from "../schema/columns";
import { changeValue, type Change } from "./edit";
import { agreeingTypes, changeFiller, changeType, fieldName, fieldOfColumn, freeColumns, keysOf, newTool, publishedName } from "./field-model";

const key = (name: string, value: FormKey["value"] = "text", required = false): FormKey => ({ name, value, required, help: "" });
const type = (name: string, keys: FormKey[], columns: string[]) => ({ name, keys, columns, help: "" });

const FORM: FormView = {
  types: [
    type("text", [key("min_length", "count"), key("pattern")], ["string", "json"]),
    type("number", [key("min", "number")], ["integer", "json"]),
    type("dropdown", [key("choices", "part_list", true)], ["string", "json"]),
    type("multi-choice", [key("choices", "part_list", true), key("min_items", "count")], ["list", "json"]),
    type("list", [key("of", "part", true)], ["list", "json"]),
  ],
  parts: {
    contract: [key("contract"), key("collections", "part_map"), key("tools", "part_list")],
    tool: [key("title"), key("tool"), key("order", "names"), key("fields", "part_list")],
    field: [key("name"), key("required", "flag"), key("type", "word"), key("help"), key("match", "word"), key("column")],
    bound: [key("name"), key("type"), key("from", "word"), key("value", "any"), key("column")],
  },
  matches: [],
  verbs: [],
};

const made = (field: Json, changes: Change[]) => changes.reduce<Json>(changeValue, field);

test("a field of another type keeps what both have, and gets what it needs", () => {
  const field = { name: "a", type: "text", min_length: 1, help: "A." };
  expect(made(field, changeType(FORM, [], field, "dropdown"))).toEqual({ name: "a", type: "dropdown", help: "A.", choices: [] });
  const choice = { name: "a", type: "dropdown", choices: ["x"] };
  expect(made(choice, changeType(FORM, [], choice, "multi-choice"))).toEqual({ name: "a", type: "multi-choice", choices: ["x"] });
  expect(made(choice, changeType(FORM, [], choice, "list"))).toEqual({ name: "a", type: "list", of: { type: "text" } });
});

test("a field is bound, and sent again", () => {
  const field = { name: "owner", type: "dropdown", choices: ["x"], required: true, column: "who" };
  const bound = made(field, changeFiller(FORM, [], field, "tenant")) as { [name: string]: Json };
  expect(bound).toEqual({ name: "owner", column: "who", from: "tenant" });
  const constant = made(bound, changeFiller(FORM, [], bound, "value")) as { [name: string]: Json };
  expect(constant).toEqual({ name: "owner", column: "who", value: "" });
  expect(made(constant, changeFiller(FORM, [], constant, "sent"))).toEqual({ name: "owner", column: "who", type: "text" });
});

test("columns become fields whose names models take", () => {
  expect(["Amount (EUR)", "Größe", "Сумма", "id"].map(fieldName)).toEqual(["amount_eur", "gro_e", "field", "id"]);
  const column = { name: "Due Date", type: "integer", isNullable: false };
  const made = fieldOfColumn(FORM, column, [{ name: "due_date" }]);
  expect(made).toEqual({ name: "due_date_2", type: "number", column: "Due Date", title: "Due Date" });
  const columns = [column, { name: "id", type: "integer", isNullable: false }];
  expect(freeColumns(columns, [made, { name: "id", param: "x" }]).map(({ name }) => name)).toEqual(["id"]);
  expect(agreeingTypes(FORM, column).agreeing.map(({ name }) => name)).toEqual(["number"]);
});

test("an inspector has the keys of the part and of the verb, and those that are set", () => {
  const names = (kind: Parameters<typeof keysOf>[1], value: { [name: string]: Json }, verb: string | null) => {
    const { first, more } = keysOf(FORM, kind, value, verb);
    return [...first, ...more].map(({ name }) => name).join(" ");
  };
  expect(names("contract", {}, null)).toBe("contract");
  expect(names("tool", {}, "create")).toBe("tool title");
  expect(names("tool", { order: ["id"] }, "create")).toBe("tool title order");
  expect(names("field", { type: "text" }, "create")).toBe("name type required help min_length pattern column");
  expect(names("field", { type: "number" }, "list")).toBe("name type required help match min column");
  expect(names("field", { from: "agent" }, "list")).toBe("name type column");
});

test("a tool is named for what it does, and by its prefix", () => {
  expect(newTool("lookup", "my tickets", [{ tool: "find_my_tickets" }]).tool).toBe("find_my_tickets_2");
  expect([publishedName("sup", "a"), publishedName("sup-", "a"), publishedName(undefined, "a")]).toEqual(["sup_a", "sup-a", "a"]);
});

test("columns are read from the schema of a list", () => {
  const column = (schema: Json) => columnsOf({ properties: { records: { items: { properties: { c: schema } } } } }).map(({ type: found, isNullable }) => `${found} ${isNullable}`)[0];
  expect(column({ type: "integer" })).toBe("integer false");
  expect(column({ type: ["string", "null"], format: "date" })).toBe("date true");
  expect(column({ anyOf: [{ type: "string", pattern: "^-?\\d+(\\.\\d+)?$" }, { type: "null" }] })).toBe("decimal true");
  expect(column({ type: "object" })).toBe("record false");
  expect(column({})).toBe("json false");
  expect(columnsOf({ type: "object" })).toEqual([]);
});

import { expect, test } from "vitest";
import type { Fault } from "../api/problem";
import type { Json } from "../api/shapes";
import { pushText, redoText, startHistory, undoText } from "./history";
import { faultsOfPart, faultsWithin, partAt, placeAfterMove, placeOf, pointerOf, toolPlaces } from "./place";

const ROOT: Json = {
  contract: "desk",
  collections: { "0": { adapter: "sheet" }, "a/b": { adapter: "sql" } },
  tools: [
    { tool: "one", fields: [{ name: "a", type: "text" }, { name: "r", type: "record", fields: [{ name: "m", type: "list", of: { type: "text" } }] }] },
    { tool: "two", fields: [] },
  ],
};
const fault = (place: string): Fault => ({ file: "source", place, message: place });
const partOf = (pointer: string, root: Json = ROOT) => {
  const { kind, at } = partAt(placeOf(pointer, root), root);
  return `${kind} ${pointerOf(at)}`;
};

test("a problem belongs to the deepest part that its place is in", () => {
  expect(partOf("")).toBe("contract ");
  expect(partOf("/title")).toBe("contract ");
  expect(partOf("/tools")).toBe("contract ");
  expect(partOf("/collections/0/adapter")).toBe("collection /collections/0");
  expect(partOf("/collections/a~1b")).toBe("collection /collections/a~1b");
  expect(partOf("/tools/0/verb")).toBe("tool /tools/0");
  expect(partOf("/tools/0/fields")).toBe("tool /tools/0");
  expect(partOf("/tools/0/fields/0/min")).toBe("field /tools/0/fields/0");
  expect(partOf("/tools/0/fields/1/fields/0/of/max_length")).toBe("element /tools/0/fields/1/fields/0/of");
  expect(partOf("/tools/0/fields/1/fields/0/name")).toBe("member /tools/0/fields/1/fields/0");
});

test("a single form and a list of forms have their tools in different places", () => {
  const form: Json = { tool: "t", fields: [{ name: "a", type: "text" }] };
  expect(toolPlaces(form)).toEqual([[]]);
  expect(partOf("/fields/0/type", form)).toBe("field /fields/0");
  expect(partOf("/fields/0/type", { fields: form.fields as Json })).toBe("field /fields/0");
  expect(toolPlaces([form, form])).toEqual([[0], [1]]);
  expect(partOf("/1/fields/0/type", [form, form])).toBe("field /1/fields/0");
  expect(toolPlaces("text")).toEqual([]);
});

test("problems that no key shows are those of the part itself", () => {
  const faults = ["/tools/0/fields/1", "/tools/0/fields/1/min", "/tools/0/fields/1/odd", "/tools/0/fields/1/fields/0/name", "/tools/0/fields/10"].map(fault);
  const at = placeOf("/tools/0/fields/1", ROOT);
  expect(faultsWithin(faults, at).length).toBe(4);
  const own = faultsOfPart(faults, at, ["name", "type", "min"], ROOT).map(({ place }) => place);
  expect(own).toEqual(["/tools/0/fields/1", "/tools/0/fields/1/odd"]);
});

test("what is selected remains selected when fields move", () => {
  const list = ["tools", 0, "fields"];
  expect(placeAfterMove([...list, 2, "of"], list, 2, 0)).toEqual([...list, 0, "of"]);
  expect(placeAfterMove([...list, 1], list, 0, 2)).toEqual([...list, 0]);
  expect(placeAfterMove([...list, 1], list, 2, 0)).toEqual([...list, 2]);
  expect(placeAfterMove([...list, 3], list, 0, 2)).toEqual([...list, 3]);
  expect(placeAfterMove(["tools", 1], list, 0, 2)).toEqual(["tools", 1]);
});

test("keys typed in one field are undone together, other changes one by one", () => {
  let history = startHistory("");
  history = pushText(history, "a", "name", 0);
  history = pushText(history, "ab", "name", 300);
  history = pushText(history, "abc", "name", 5_000);
  history = pushText(history, "abcd", "title", 5_100);
  history = pushText(history, "abcde", "", 5_150);
  history = pushText(history, "abcdef", "", 5_160);
  const seen = [];
  while (history.past.length > 0) {
    history = undoText(history);
    seen.push(history.text);
  }
  expect(seen).toEqual(["abcde", "abcd", "abc", "ab", ""]);
  expect(redoText(redoText(history)).text).toBe("abc");
  expect(pushText(undoText(redoText(history)), "z", "", 0).future).toEqual([]);
});

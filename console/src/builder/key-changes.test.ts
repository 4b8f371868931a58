import { expect, test } from "vitest";
import type { Json } from "../api/shapes";
import { changeText, readText, valueAt, type Change, type Place } from "./edit";
import { changesBetween, removeName, setChoiceTitle, setChoiceValue } from "./key-changes";

const FORM = `name: status
choices:
  # The first.
  - a   # plain
  - value: b   # what is sent
    title: B
  - title: C
    # Sent.
    value: c
  - value: d
columns:   [id, name]   # of the table
order:
  # The newest first.
  - -created   # by the server
  - id
  - name   # the last
settings:
  connection:   data   # the file
  # Where it is.
  path: a.csv
  csv: { separator: ";",   header: 1 }
  limits: [1,   2, 3]
`;

const make = (text: string, changes: Change[]) => changes.reduce(changeText, text);
const at = (place: Place) => valueAt(readText(FORM).value, place) as Json;
const lines = (text: string) => text.split("\n");
/** The lines that were removed and those that were added. */
function difference(changed: string) {
  return [lines(FORM).filter((line) => !lines(changed).includes(line)), lines(changed).filter((line) => !lines(FORM).includes(line))];
}

test("a typed title or value changes only the line of its choice", () => {
  const title = (index: number, text: string) => difference(make(FORM, setChoiceTitle(["choices", index], at(["choices", index]), text)));
  const value = (index: number, text: string) => difference(make(FORM, setChoiceValue(["choices", index], at(["choices", index]), text)));
  expect(title(0, "A")).toEqual([["  - a   # plain"], ["  - { value: a, title: A }   # plain"]]);
  expect(title(1, "Bee")).toEqual([["    title: B"], ["    title: Bee"]]);
  expect(title(1, "")).toEqual([["    title: B"], []]);
  expect(title(2, "Sea")).toEqual([["  - title: C"], ["  - title: Sea"]]);
  expect(title(3, "D")).toEqual([[], ["    title: D"]]);
  expect(title(3, "")).toEqual([[], []]);
  expect(value(0, "aa")).toEqual([["  - a   # plain"], ["  - aa   # plain"]]);
  expect(value(1, "bb")).toEqual([["  - value: b   # what is sent"], ["  - value: bb   # what is sent"]]);
});

test("replacing a block item changes nothing else", () => {
  const changed = changeText(FORM, { kind: "set", at: ["choices", 1], value: "b" });
  expect(difference(changed)).toEqual([["  - value: b   # what is sent", "    title: B"], ["  - b"]]);
  const last = changeText("a:\n  - b: 1\n    c: 2", { kind: "set", at: ["a", 0], value: { b: 1, c: { d: 2 } } });
  expect(last).toBe("a:\n  - b: 1\n    c: { d: 2 }");
});

test("a name that is added or taken out leaves the others with their comments", () => {
  const order = at(["order"]) as Json[];
  expect(difference(make(FORM, changesBetween(["order"], order, [...order, "more"])))).toEqual([[], ["  - more"]]);
  expect(difference(make(FORM, removeName(["order"], order, "id")))).toEqual([["  - id"], []]);
  expect(difference(make(FORM, removeName(["order"], order, "name")))).toEqual([["  - name   # the last"], []]);
  expect(difference(make(FORM, removeName(["columns"], ["id", "name"], "id")))).toEqual([["columns:   [id, name]   # of the table"], ["columns:   [name]   # of the table"]]);
  expect(removeName(["order"], ["a", "b", "a"], "a").map((change) => change.at)).toEqual([["order", 2], ["order", 0]]);
});

test("only the comment of a name in brackets is removed with it", () => {
  const text = "order: [\n  a,   # the first\n  b,   # the second\n  c   # the third\n]\n";
  expect(make(text, removeName(["order"], ["a", "b", "c"], "c"))).toBe("order: [\n  a,   # the first\n  b,   # the second\n]\n");
  expect(make(text, removeName(["order"], ["a", "b", "c"], "b"))).toBe("order: [\n  a,   # the first\n  c   # the third\n]\n");
});

test("typed JSON changes only the members that differ", () => {
  const settings = at(["settings"]) as { [name: string]: Json };
  const typed = (next: { [name: string]: Json }) => difference(make(FORM, changesBetween(["settings"], settings, next)));
  expect(typed({ ...settings, path: "b" })).toEqual([["  path: a.csv"], ["  path: b"]]);
  expect(typed({ ...settings, sheet: 1 })).toEqual([[], ["  sheet: 1"]]);
  expect(typed({ ...settings, csv: { separator: ";", header: 2 } })).toEqual([['  csv: { separator: ";",   header: 1 }'], ['  csv: { separator: ";",   header: 2 }']]);
  expect(typed({ ...settings, limits: [1, 9, 3] })).toEqual([["  limits: [1,   2, 3]"], ["  limits: [1,   9, 3]"]]);
  const { path: _, ...less } = settings;
  expect(typed(less)).toEqual([["  path: a.csv"], []]);
  expect(changesBetween(["settings"], settings, settings)).toEqual([]);
  expect(changesBetween(["settings"], settings, { other: 1 })).toEqual([{ kind: "set", at: ["settings"], value: { other: 1 } }]);
});

test("changes between any two values make the one into the other", () => {
  const values: Json[] = [{}, [], 1, "a", [1, 2, 3], [2, 3], [1, 4, 5, 3], [[1], [2]], [[1, 2]], { a: 1, b: { c: [1] } }, { b: { c: [1, 2], d: null }, e: 1 }, { a: { a: 1 } }, [1, 1, 1], [1, 1]];
  for (const before of values) {
    for (const after of values) {
      const text = changeText("k: 0\nlast: 1\n", { kind: "set", at: ["k"], value: before });
      const made = make(text, changesBetween(["k"], before, after));
      expect((readText(made).value as { k: Json }).k, JSON.stringify([before, after])).toEqual(after);
    }
  }
});

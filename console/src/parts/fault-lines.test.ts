import { expect, test } from "vitest";
import { placeFaults } from "./fault-lines";

const text = `# A contract.
contract: prices
tools:
  - tool: list_prices
    fields:
      - { name: product, type: text }
      - name: "price"
        "min/max": 3
`;
const lineOf = (place: string, of = text, message = "is wrong") => placeFaults([{ file: "source", place, message }], of)[0]?.line;

test("a fault is at the line of its place", () => {
  expect(lineOf("/contract")).toBe(2);
  expect(lineOf("/tools/0/tool")).toBe(4);
  expect(lineOf("/tools/0/fields/0/type")).toBe(6);
  expect(lineOf("/tools/0/fields/1/min~1max")).toBe(8);
});

test("what is missing is at the line of what it is missing in", () => {
  expect(lineOf("/tools/0/verb")).toBe(4);
  expect(lineOf("/tools/0/fields/0/name/x")).toBe(6);
  expect(lineOf("")).toBeUndefined();
});

test("JSON and texts that are not YAML have lines too", () => {
  expect(lineOf("/tools/1/verb", '{\n"tools": [\n{"verb": 1},\n{"verb": 2}]}')).toBe(4);
  expect(lineOf("", "a: [1", "YAML: unexpected end at line 1, column 6")).toBe(1);
});

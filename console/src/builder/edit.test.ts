import { expect, test } from "vitest";
import type { Json } from "../api/shapes";
import { changeText, readText, UneditableText, type Change } from "./edit";

const DESK = `# The desk.
contract: desk   # its endpoint
tools:
  # Makes a ticket.
  - tool: create_ticket
    description: |
      Creates a ticket.
      Returns it.
    fields:
      # What it is about.
      - { name: subject,  type: text,     required: true }   # one line
      # How urgent it is.
      - name: priority
        type: number   # whole
        choices:
          - one   # the least
          - two

      - { name: notify,   type: checkbox }
    # In this order.
    order: [id, -priority]

  - tool: list_tickets
    fields: []
`;
const FIELDS = ["tools", 0, "fields"];

const lines = (text: string) => text.split("\n");
/** The lines of one text that the other one lacks. */
const without = (text: string, other: string) => lines(text).filter((line) => !lines(other).includes(line));

test("a field that is moved takes its comments with it, and no other line changes", () => {
  const moved = changeText(DESK, { kind: "move", at: FIELDS, from: 0, to: 1 });
  expect([...lines(moved)].sort()).toEqual([...lines(DESK)].sort());
  expect(moved.indexOf("# How urgent")).toBeLessThan(moved.indexOf("# What it is about."));
  expect(moved).toContain("      # What it is about.\n      - { name: subject,  type: text,     required: true }   # one line\n");
  expect(changeText(moved, { kind: "move", at: FIELDS, from: 1, to: 0 })).toBe(DESK);
  expect(changeText(changeText(DESK, { kind: "move", at: FIELDS, from: 2, to: 0 }), { kind: "move", at: FIELDS, from: 0, to: 2 })).toBe(DESK);
});

test("a value is written in its place", () => {
  const longer = changeText(DESK, { kind: "set", at: [...FIELDS, 0, "max_length"], value: 80 });
  expect(without(longer, DESK)).toEqual(["      - { name: subject,  type: text,     required: true, max_length: 80 }   # one line"]);
  const named = changeText(DESK, { kind: "set", at: [...FIELDS, 1, "type"], value: "dropdown" });
  expect(without(named, DESK)).toEqual(["        type: dropdown   # whole"]);
  const helped = changeText(DESK, { kind: "set", at: [...FIELDS, 1, "help"], value: "How urgent: 1 to 5." });
  expect(without(helped, DESK)).toEqual(['        help: "How urgent: 1 to 5."']);
  const choice = changeText(DESK, { kind: "set", at: [...FIELDS, 1, "choices", 0], value: "none" });
  expect(without(choice, DESK)).toEqual(["          - none   # the least"]);
  const described = changeText(DESK, { kind: "set", at: ["tools", 0, "description"], value: "One.\nTwo." });
  expect(described).toContain("    description: |-\n      One.\n      Two.\n    fields:");
});

test("only the named keys and fields are removed", () => {
  const optional = changeText(DESK, { kind: "remove", at: [...FIELDS, 0, "required"] });
  expect(without(optional, DESK)).toEqual(["      - { name: subject,  type: text }   # one line"]);
  const untyped = changeText(DESK, { kind: "remove", at: [...FIELDS, 1, "type"] });
  expect(without(DESK, untyped)).toEqual(["        type: number   # whole"]);
  const fewer = changeText(DESK, { kind: "remove", at: [...FIELDS, 1] });
  expect(fewer).not.toContain("# How urgent");
  expect(fewer).toContain("# What it is about.");
  const first = changeText(DESK, { kind: "remove", at: [...FIELDS, 1, "name"] });
  expect(first).toContain("      - type: number   # whole\n");
});

test("fields and tools are added as the documentation writes them", () => {
  const field = { name: "status", type: "dropdown", choices: ["open", "closed"], help: "It is open, or not." };
  const more = changeText(DESK, { kind: "insert", at: FIELDS, index: 3, value: field });
  expect(without(more, DESK)).toEqual(['      - { name: status, type: dropdown, choices: [open, closed], help: "It is open, or not." }']);
  const first = changeText(DESK, { kind: "insert", at: ["tools", 1, "fields"], index: 0, value: field });
  expect(first.endsWith("    fields:\n      - { name: status, type: dropdown, choices: [open, closed], help: \"It is open, or not.\" }\n")).toBe(true);
  const tool = changeText(DESK, { kind: "insert", at: ["tools"], index: 2, value: { tool: "count", verb: "count", collection: "t", fields: [] } });
  expect(tool.endsWith("  - tool: count\n    verb: count\n    collection: t\n    fields: []\n")).toBe(true);
  const source = changeText(DESK, { kind: "set", at: ["collections"], value: { t: { adapter: "sheet", settings: { connection: "data", path: "a b.csv" }, write: true } } });
  expect(source).toContain('collections:\n  t:\n    adapter: sheet\n    settings: { connection: data, path: "a b.csv" }\n    write: true\n');
});

test("JSON remains JSON", () => {
  const json = '{\n  "tool": "t",\n  "fields": [\n    { "name": "a", "type": "text" },\n    { "name": "b", "type": "number" }\n  ]\n}\n';
  const moved = changeText(json, { kind: "move", at: ["fields"], from: 0, to: 1 });
  expect(JSON.parse(moved).fields.map((field: { name: string }) => field.name)).toEqual(["b", "a"]);
  const more = changeText(moved, { kind: "insert", at: ["fields"], index: 2, value: { name: "c", type: "date" } });
  expect(more).toContain(',\n    {"name":"c","type":"date"}\n  ]');
  expect(JSON.parse(changeText(more, { kind: "set", at: ["title"], value: "A \"title\"" })).title).toBe('A "title"');
});

test("texts that YAML would read as something else keep their meaning", () => {
  for (const value of ["yes", "007", "null", "- a", "a: b", "#x", " padded ", "", "1.5", "a\nb\n", "'", '"', "{", "é", "true", "a, b", "x\t"]) {
    const text = changeText(DESK, { kind: "set", at: [...FIELDS, 0, "help"], value });
    expect((readText(text).value as unknown as { tools: { fields: { help: string }[] }[] }).tools[0]?.fields[0]?.help).toBe(value);
    const block = changeText(DESK, { kind: "set", at: ["tools", 0, "title"], value });
    expect((readText(block).value as unknown as { tools: { title: string }[] }).tools[0]?.title).toBe(value);
  }
});

/** A small generator from a seed, so that a failure is reproducible. */
function numbers(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test("whatever is changed, in whatever order, no comment is lost but those of what is removed", () => {
  const comments = ["# The desk.", "# its endpoint", "# Makes a ticket.", "# In this order."];
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = numbers(seed);
    let text = DESK;
    for (let step = 0; step < 12; step += 1) {
      const count = (readText(text).value as unknown as { tools: { fields: Json[] }[] }).tools[0]?.fields.length ?? 0;
      const changes: Change[] = [
        { kind: "insert", at: FIELDS, index: next(count + 1), value: { name: `f${step}`, type: "text", help: "Some help, of course." } },
        ...(count > 1 ? ([{ kind: "move", at: FIELDS, from: next(count), to: next(count) }] as Change[]) : []),
        ...(count > 0
          ? ([
              { kind: "remove", at: [...FIELDS, next(count)] },
              { kind: "set", at: [...FIELDS, next(count), "title"], value: `Title ${step}` },
            ] as Change[])
          : []),
      ];
      // Each change is checked against its meaning, or it throws.
      text = changeText(text, changes[next(changes.length)] as Change);
    }
    for (const comment of comments) expect(text, `seed ${seed}`).toContain(comment);
  }
});

test("a text that is not YAML is not edited", () => {
  expect(() => changeText("a: [", { kind: "set", at: ["b"], value: 1 })).toThrow(UneditableText);
});

const aliased = (uses: number) => `a: &a 1\nb: [${Array(uses).fill("*a").join(", ")}]\n`;

test("a text has no value where an alias cannot be replaced", () => {
  for (const text of ["contract: c\ndescription: *b\n", "a: &a [*a]\n", aliased(1_100)]) {
    expect(readText(text).value, text.slice(0, 40)).toBeUndefined();
    expect(() => changeText(text, { kind: "set", at: ["title"], value: "x" })).toThrow(UneditableText);
  }
});

test("an anchor may be used as often as the gateway allows", () => {
  expect(changeText(aliased(900), { kind: "set", at: ["c"], value: 2 })).toBe(`${aliased(900)}c: 2\n`);
});

test("what is inside an alias is not edited", () => {
  const text = "a: &a { n: { m: 1 } }\nb: *a\n";
  expect(() => changeText(text, { kind: "set", at: ["b", "n", "m"], value: 2 })).toThrow(UneditableText);
  expect(() => changeText(text, { kind: "remove", at: ["b", "n"] })).toThrow(UneditableText);
});

test("a second document is an error, and is not deleted", () => {
  const text = "a: 1\n---\nb: 2\n";
  expect(readText(text).value).toBeUndefined();
  expect(() => changeText(text, { kind: "remove", at: ["a"] })).toThrow(UneditableText);
});

test("a text with CRLF has no other line break after any change", () => {
  const crlf = (text: string) => text.replace(/\n/g, "\r\n");
  const changes: Change[] = [
    { kind: "set", at: ["contract"], value: "office" },
    { kind: "set", at: ["title"], value: "Desk" },
    { kind: "set", at: ["tools", 0, "description"], value: "One.\nTwo." },
    { kind: "set", at: ["tools", 0, "description"], value: "One" },
    { kind: "set", at: ["tools", 0, "order"], value: [{ a: 1 }, { b: 2 }] },
    { kind: "set", at: [...FIELDS, 1, "choices", 1], value: "three" },
    { kind: "set", at: [...FIELDS, 1, "choices"], value: ["a"] },
    { kind: "insert", at: FIELDS, index: 1, value: { name: "a", type: "text" } },
    { kind: "insert", at: ["tools"], index: 2, value: { tool: "count", verb: "count", fields: [] } },
    { kind: "move", at: FIELDS, from: 0, to: 2 },
    { kind: "remove", at: [...FIELDS, 1] },
    { kind: "remove", at: [...FIELDS, 1, "choices"] },
    { kind: "remove", at: ["tools", 1] },
  ];
  for (const text of [DESK, DESK.trimEnd()]) {
    for (const change of changes) expect(changeText(crlf(text), change), JSON.stringify(change)).toBe(crlf(changeText(text, change)));
  }
  const anchored = "a: &a { m: 1 }\n# b\nb: { n: *a, o: [] }\n";
  expect(changeText(crlf(anchored), { kind: "remove", at: ["b"] })).toBe(crlf(changeText(anchored, { kind: "remove", at: ["b"] })));
});

test("a comment at the end of an item is moved and removed with it", () => {
  const item = "  - name: a\n    type: text\n    # The end of a.\n\n    # It has two.\n";
  const text = (items: string) => `fields:\n${items}# All of them.\nb: 1\n`;
  const other = "  # What b is.\n  - name: b\n    type: text\n";
  const whole = text(item + other);
  expect(changeText(whole, { kind: "move", at: ["fields"], from: 0, to: 1 })).toBe(text(other + item));
  expect(changeText(text(other + item), { kind: "move", at: ["fields"], from: 1, to: 0 })).toBe(whole);
  expect(changeText(whole, { kind: "remove", at: ["fields", 0] })).toBe(text(other));
  expect(changeText(text(other + item), { kind: "remove", at: ["fields", 1] })).toBe(text(other));
  const added = changeText(text(item), { kind: "insert", at: ["fields"], index: 1, value: { name: "c", type: "text" } });
  expect(added).toBe(text(`${item}  - { name: c, type: text }\n`));
});

// The small adapter that every language writes the same, in JavaScript.
import * as log from "weir:plugin/log@0.1.0";
import * as progress from "weir:plugin/progress@0.1.0";
import * as sql from "weir:plugin/sql@0.1.0";

const SHAPE = {
  name: "tiny",
  fields: [
    { key: "id", type: "integer", nullable: false },
    { key: "name", type: "string", nullable: false },
    { key: "greeting", type: "string", nullable: false },
  ],
  key: ["id"],
  capabilities: { read: true, matches: { "*": ["equals"] }, order: ["id"] },
};
const NAMES = ["one", "two", "three"];

const fail = (code, message, field, retryAfterMs) => {
  throw { code, message, field, retryAfterMs };
};

// Anything thrown that is not an error record would trap without a message, so every export is guarded.
const guard = (f) => (...args) => {
  try {
    return f(...args);
  } catch (error) {
    // When the host refuses a call, it throws an `Error` that carries the record. Any other `Error` may have its own
    // code, and is not a record.
    const record = error?.payload ?? (error instanceof Error ? undefined : error);
    if (typeof record?.code === "string" && typeof record.message === "string") throw record;
    // The text was not checked for secrets: callers who listen to the log do not receive a line with this field.
    log.write("error", `${error}\n${error?.stack ?? ""}`, '{"weir.log_only":true}');
    throw { code: "internal", message: "The adapter failed; its operator finds the reason in the log." };
  }
};

const parse = (settings) => {
  let parsed;
  try {
    parsed = JSON.parse(settings);
  } catch {
    fail("invalid", "The settings are not JSON.", "settings");
  }
  const keys = Object.keys(parsed ?? {});
  if (keys.length !== 1 || typeof parsed.greeting !== "string") {
    fail("invalid", "The settings are wrong: they are one greeting.", "settings");
  }
  return parsed;
};

const open = new Map();
let calls = 0;

// What every language does alike when a test asks for it: `options` of `{"do": word}`.
const act = (word) => {
  switch (word) {
    case "refuse":
      return fail("conflict", "Refused, as asked.", "name", 7);
    case "query":
      return sql.query({ connection: "db", text: "SELECT 'one' AS name", parameters: "[]", limit: 1 }).records;
    // What an instance remembers.
    case "count":
      return JSON.stringify([{ calls: ++calls }]);
    case "large":
      return JSON.stringify([{ name: "x".repeat(5 << 20) }]);
    case "too-large":
      return JSON.stringify([{ name: "x".repeat(9 << 20) }]);
    case "spin":
      for (;;);
    default:
      throw new Error("as asked");
  }
};

const read = (collection, query) => {
  log.write("info", "reading", undefined);
  progress.report(1, 3, "reading");
  const { greeting } = open.get(collection) ?? fail("not_configured", "The collection was never configured.");
  const word = JSON.parse(query.options ?? "{}").do;
  if (word !== undefined) return { records: act(word), next: undefined };
  const behind = query.cursor === undefined ? 0 : Number(query.cursor);
  if (!Number.isInteger(behind)) fail("invalid", "The cursor is not one of this list.", "cursor");
  const records = [];
  for (const [index, name] of NAMES.entries()) {
    const record = { id: index + 1, name, greeting };
    const holds = query.conditions.every(({ column, comparison, value }) => {
      if (!(column in record)) fail("invalid", "The collection has no such column.", column);
      if (comparison !== "equals") fail("unsupported", `The comparison ${comparison} is unknown.`, column);
      return record[column] === JSON.parse(value);
    });
    if (!holds || record.id <= behind) continue;
    if (records.length === query.limit) return { records: JSON.stringify(records), next: String(index) };
    records.push(record);
  }
  return { records: JSON.stringify(records), next: undefined };
};

export const about = {
  about: guard(() =>
    JSON.stringify({
      name: "tiny-js",
      version: "0.1.0",
      adapters: [{ name: "tiny-js", settings: { type: "object", required: ["greeting"] } }],
      requests: ["sql"],
    })),
};

export const collections = {
  describe: guard((_adapter, settings) => {
    parse(settings);
    return JSON.stringify(SHAPE);
  }),
  configure: guard((collection, _adapter, settings, _shape) => {
    open.set(collection, parse(settings));
  }),
  read: guard(read),
  write: guard(() => fail("unsupported", "tiny-js is read-only.")),
};

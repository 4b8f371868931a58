// An adapter: the numbers up to a bound, as a collection.
// First, since what is imported after it may print or draw: `console`, `Math.random` and `crypto` are made of what the gateway gives.
import { begin } from "./sdk/globals.js";
import * as log from "weir:plugin/log@0.1.0";
import * as random from "weir:plugin/random@0.1.0";

const SHAPE = {
  name: "numbers",
  fields: [
    { key: "number", type: "integer", nullable: false },
    { key: "square", type: "integer", nullable: false },
  ],
  key: ["number"],
  capabilities: { read: true, matches: { "*": ["equals"] }, order: ["number"] },
};

const fail = (code, message, field) => {
  throw { code, message, field };
};

// Anything thrown that is not an error record would trap without a reason, so every export is guarded.
const guard = (f) => (...args) => {
  begin(log, random);
  try {
    return f(...args);
  } catch (error) {
    // A refusal by the host comes as an `Error` that carries the record.
    // Any other `Error` may have its own code, and is not a record.
    const record = error?.payload ?? (error instanceof Error ? undefined : error);
    if (typeof record?.code === "string" && typeof record.message === "string") throw record;
    // The text may contain a secret: with this field, callers who listen to the log do not get the line.
    log.write("error", `${error}\n${error?.stack ?? ""}`, '{"weir.log_only":true}');
    throw { code: "internal", message: "The adapter failed; its operator finds the reason in the log." };
  }
};

const upTo = (settings) => {
  const { up_to } = JSON.parse(settings);
  if (!Number.isInteger(up_to) || up_to < 1) fail("invalid", "`up_to` must be a whole number from 1 on.", "up_to");
  return up_to;
};

// What a collection was opened with. An instance may be dropped at any time: this is a cache and nothing more.
const open = new Map();

export const about = {
  about: guard(() =>
    JSON.stringify({
      name: "{{name}}",
      version: "0.1.0",
      adapters: [
        { name: "{{name}}", settings: { type: "object", properties: { up_to: { type: "integer" } }, required: ["up_to"] } },
      ],
      requests: [],
    })),
};

export const collections = {
  describe: guard((_adapter, settings) => {
    upTo(settings);
    return JSON.stringify(SHAPE);
  }),
  configure: guard((collection, _adapter, settings, _shape) => {
    open.set(collection, upTo(settings));
  }),
  read: guard((collection, query) => {
    const last = open.get(collection) ?? fail("not_configured", "The collection was never configured.");
    // "-number" asks for the largest first; the shape offers no other order.
    const step = query.order[0] === "-number" ? -1 : 1;
    // `componentize-qjs` passes an absent cursor as null.
    const first = query.cursor == null ? (step > 0 ? 1 : last) : Number(query.cursor) + step;
    if (!Number.isInteger(first)) fail("invalid", "The cursor is not one of this list.", "cursor");
    const records = [];
    for (let number = first; number >= 1 && number <= last; number += step) {
      const record = { number, square: number * number };
      const holds = query.conditions.every(({ column, comparison, value }) => {
        if (comparison !== "equals") fail("unsupported", `The comparison ${comparison} is unknown.`, column);
        return record[column] === JSON.parse(value);
      });
      if (!holds) continue;
      if (records.length === query.limit) return { records: JSON.stringify(records), next: String(number - step) };
      records.push(record);
    }
    return { records: JSON.stringify(records), next: undefined };
  }),
  write: guard(() => fail("unsupported", "{{name}} is read-only.")),
};

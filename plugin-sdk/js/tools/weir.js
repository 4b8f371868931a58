// What a plugin in JavaScript imports: a function with the types of its parameters is a tool.
//
// Types are declared once, here, and are the JSON Schema that agents read. `weir.d.ts` has the same for editors.
import { LOG_ONLY, begin, held, json, shown } from "./globals.js";
import * as clockOf from "weir:plugin/clock@0.1.1";
import * as filesOf from "weir:plugin/files@0.1.1";
import * as httpOf from "weir:plugin/http@0.1.1";
import * as logOf from "weir:plugin/log@0.1.1";
import * as progressOf from "weir:plugin/progress@0.1.1";
import * as randomOf from "weir:plugin/random@0.1.1";
import * as sqlOf from "weir:plugin/sql@0.1.1";

// ---- types ----

const COMMON = ["title", "description", "examples"];
const TEXT = ["minLength", "maxLength", "pattern", "format"];
const NUMBER = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const LIST = ["minItems", "maxItems"];
const MAP = ["minProperties", "maxProperties"];
/** How `weir call` takes a parameter. */
const CLI = ["positional", "aliases", "metavar"];

/** `inside` has the types of what the value holds: `fields`, `items` or `values`. */
const make = (schema, keywords, options = {}, inside = {}) => {
  const type = { schema, optional: false, cli: {}, ...inside };
  for (const [name, value] of Object.entries(options)) {
    if (name === "default") type.default = held(value);
    else if (CLI.includes(name)) type.cli[name] = value;
    else if (COMMON.includes(name) || keywords.includes(name)) schema[name] = value;
    else throw new TypeError(`\`${name}\` is not an option of this type; it has ${[...keywords, ...COMMON, "default", ...CLI].join(", ")}`);
  }
  return type;
};

export const text = (options) => make({ type: "string" }, TEXT, options);
export const integer = (options) => make({ type: "integer" }, NUMBER, options);
export const number = (options) => make({ type: "number" }, NUMBER, options);
export const boolean = (options) => make({ type: "boolean" }, [], options);
export const date = (options) => make({ type: "string", format: "date" }, [], options);
export const datetime = (options) => make({ type: "string", format: "date-time" }, [], options);
export const anything = (options) => make({}, [], options);
export const choice = (values, options) => {
  const kinds = new Set(values.map((value) => (Number.isInteger(value) ? "integer" : typeof value === "string" ? "string" : "other")));
  if (kinds.size !== 1 || kinds.has("other")) throw new TypeError("a choice is among texts, or among whole numbers");
  return make({ type: [...kinds][0], enum: [...values] }, [], options);
};
export const list = (items, options) => {
  const schema = isAnything(typed(items, "what a list holds")) ? { type: "array" } : { type: "array", items: inner(items) };
  return make(schema, LIST, options, { items });
};
export const set = (items, options) =>
  make({ type: "array", items: inner(typed(items, "what a set holds")), uniqueItems: true }, LIST, options, { items });
export const map = (values, options) => {
  const schema = isAnything(typed(values, "what a map holds")) ? { type: "object" } : { type: "object", additionalProperties: inner(values) };
  return make(schema, MAP, options, { values });
};
export const record = (fields, options) => make(properties(fields, false), [], options, { fields });
export const anyOf = (types, options) =>
  make({ anyOf: types.map((type) => inner(typed(type, "an alternative"))) }, [], options);

/**
 * May be left out; the function gets null then. What is returned so may be null: the whole answers `not_found`, and a field
 * of a record is left out.
 */
export const optional = (type) => ({ ...typed(type, "what is optional"), optional: true });

/** Refuses what is not a type; a function that makes one is easily written without its parentheses. */
const typed = (type, what) => {
  if (typeof type?.schema === "object") return type;
  if (typeof type === "object" && type !== null && Object.values(type).some((each) => typeof each?.schema === "object")) {
    throw new TypeError(`${what} is not a type; write \`record({ … })\``);
  }
  const bare = { text, integer, number, boolean, date, datetime, anything };
  const holding = { choice, list, set, map, record, anyOf, optional };
  const meant = (of) => Object.keys(of).find((name) => of[name] === type);
  const instead = meant(holding) ? `${meant(holding)}(…)` : `${meant(bare) ?? "text"}()`;
  throw new TypeError(`${what} is not a type; write \`${instead}\``);
};

const isAnything = (type) => Object.keys(type.schema).length === 0;
/** Null is a value of `anything()` as any other, with a description too, and of an `anyOf` with an optional alternative. */
const holdsNull = ({ optional, schema }) => !optional && takesNull(schema);
const takesNull = ({ type, anyOf }) => (type === undefined ? anyOf?.some(takesNull) ?? true : [type].flat().includes("null"));

/** Inside a list, a map or an alternative an optional value may be null. */
const inner = (type) => {
  if (!type.optional) return type.schema;
  const { type: kind } = type.schema;
  return typeof kind === "string" && !type.schema.enum
    ? { ...type.schema, type: [kind, "null"] }
    : { anyOf: [type.schema, { type: "null" }] };
};

const properties = (fields, ofTool) => {
  const schema = { type: "object", properties: {} };
  const required = [];
  for (const [name, type] of Object.entries(fields)) {
    const property = { ...typed(type, `\`${name}\``).schema };
    if (type.default !== undefined) property.default = type.default;
    else if (type.optional && ofTool) property.default = null;
    else if (!type.optional) required.push(name);
    schema.properties[name] = property;
  }
  if (required.length > 0) schema.required = required;
  return schema;
};

/** The value with each record in it changed by `change`, which gets a copy and its fields. What `anyOf` holds stays as it is. */
const within = (type, given, change) => {
  const value = held(given);
  if (typeof value !== "object" || value === null || typeof value.toJSON === "function") return value;
  if (Array.isArray(value)) return type.items ? value.map((each) => within(type.items, each, change)) : value;
  if (type.values) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, within(type.values, each, change)]));
  if (!type.fields) return value;
  const copy = { ...value };
  change(copy, type.fields);
  for (const [name, of] of Object.entries(type.fields)) {
    if (Object.hasOwn(copy, name)) copy[name] = within(of, copy[name], change);
  }
  return copy;
};

/** Puts in what was left out: the default, or null. */
const fill = (given, fields) => {
  for (const [name, type] of Object.entries(fields)) {
    // Every object has a `constructor` that is not its own.
    const isLeftOut = !Object.hasOwn(given, name) || (given[name] === null && !holdsNull(type));
    if (isLeftOut) given[name] = type.default ?? null;
  }
};

/** Leaves out what may be left out and is null: the schema of the field does not allow null. */
const leaveOut = (told, fields) => {
  for (const [name, type] of Object.entries(fields)) {
    if (type.optional && told[name] === null) delete told[name];
  }
};

// ---- tools ----

/** The longest title that the gateway takes. */
const TITLE_MAX = 200;

/**
 * One tool. Its description's first paragraph is the title; the rest, or else the first paragraph, the description. Of a paragraph
 * that is too long for a title, the first sentence is one, if that is short enough.
 */
export const tool = (given) => {
  const { name, title, description, parameters = {}, returns, run, requests = [], task, ...hints } = given ?? {};
  refuseOtherForms(given, name, { title, description }, parameters);
  refuseOtherThanFunctions(name, run);
  const known = ["readOnly", "destructive", "idempotent", "openWorld"];
  for (const hint of Object.keys(hints)) {
    if (!known.includes(hint)) throw new TypeError(`\`${hint}\` is not an option of a tool; it has ${known.join(", ")}, task`);
  }
  const definition = { name };
  const documented = paragraphs(description);
  if (title ?? documented?.first) definition.title = title ?? documented.first;
  if (documented) definition.description = documented.rest;
  definition.inputSchema = properties(parameters, true);
  if (returns) definition.outputSchema = typed(returns, "`returns`").schema;
  const annotations = known.filter((hint) => hints[hint] !== undefined).map((hint) => [`${hint}Hint`, hints[hint]]);
  if (annotations.length > 0) definition.annotations = Object.fromEntries(annotations);
  if (task === true || task === "required") {
    definition.execution = { taskSupport: task === true ? "optional" : task };
  } else if (task !== undefined && task !== false) throw new TypeError('`task` is true or "required"');
  const cli = Object.entries(parameters).filter(([, type]) => Object.keys(type.cli).length > 0);
  if (cli.length > 0) definition.cli = { parameters: Object.fromEntries(cli.map(([of, type]) => [of, type.cli])) };
  return { definition, parameters, returns, run, requests };
};

/** Refuses what an author writes who takes a tool for something else: without a name nothing could be said of it. */
const refuseOtherForms = (given, name, words, parameters) => {
  const meant = typeof given === "string" ? given : "deploy";
  if (typeof name !== "string") throw new TypeError(`a tool has a name: write \`tool({ name: "${meant}", … })\``);
  for (const [what, text] of Object.entries(words)) {
    if (text !== undefined && typeof text !== "string") throw new TypeError(`the ${what} of \`${name}\` is a text, and not ${shown(text)}`);
  }
  if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters)) {
    throw new TypeError(`the parameters of \`${name}\` have names: write \`parameters: { service: text() }\``);
  }
};

/** What a call begins has ended when it returns: nothing could wake a function that waits. */
const refuseOtherThanFunctions = (name, run) => {
  if (typeof run !== "function") throw new TypeError(`\`${name}\` has no function: write \`run: (given) => …\``);
  const kind = run.constructor?.name;
  if (kind === "AsyncFunction") {
    throw new TypeError(`\`${name}\` is async: what a plugin calls has answered before it returns; leave out \`async\`, and each \`await\``);
  }
  if (kind === "GeneratorFunction" || kind === "AsyncGeneratorFunction") {
    throw new TypeError(`\`${name}\` yields, and a tool answers once: \`return\` a list`);
  }
};

const paragraphs = (description) => {
  const written = (description ?? "").split("\n").map((line) => line.trim()).join("\n").trim();
  if (written === "") return undefined;
  const [first, ...rest] = written.split(/\n\n+/);
  const paragraph = first.replace(/\n/g, " ");
  const fits = (text) => [...text].length <= TITLE_MAX;
  if (fits(paragraph)) return { first: paragraph, rest: rest.join("\n\n") || paragraph };
  const [sentence] = paragraph.match(/^.+?[.!?](?=\s|$)/) ?? [];
  return { first: sentence && fits(sentence) ? sentence : undefined, rest: written };
};

/** A refusal: a reason for programs, a sentence for the caller. */
export class Refusal extends Error {
  constructor(reason, sentence, { field, retryAfterMs, details } = {}) {
    super(sentence);
    for (const [what, text] of Object.entries({ reason, sentence, field: field ?? "" })) {
      if (typeof text !== "string") throw new TypeError(`the ${what} of a refusal is a text, and not ${shown(text)}`);
    }
    if (retryAfterMs != null && !(retryAfterMs >= 0 && retryAfterMs < 2 ** 32)) {
      throw new RangeError(`\`retryAfterMs\` is from 0 to ${2 ** 32 - 1}, and not ${shown(retryAfterMs)}`);
    }
    const wait = retryAfterMs == null ? undefined : Math.ceil(Number(retryAfterMs));
    Object.assign(this, { reason, field: field ?? undefined, retryAfterMs: wait, details });
  }
}
export const refuse = (reason, sentence, more) => {
  throw new Refusal(reason, sentence, more);
};

/** Content blocks, with or without a value. */
export class Answer {
  constructor(value, content) {
    Object.assign(this, { value, content });
  }
}
export const answer = (value, content) => new Answer(value, content);
export const blocks = (...content) => new Answer(undefined, content);

/** Questions for the caller; the tool is called again with the answers. `state` is a text that is kept until then. */
export class Question {
  constructor(requests, state) {
    Object.assign(this, { requests, state });
  }
}
export const ask = (requests, state) => new Question(requests, state);
export const form = (message, fields) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: properties(fields, false) },
});

/** The call that a tool runs in: the second argument of its function. */
export class Context {
  #json;
  #resumed;
  #settings;
  constructor(json, resumed, settings) {
    [this.#json, this.#resumed, this.#settings] = [json, resumed, settings];
  }
  /** Everything that the gateway passes about the call: agent, tenant, call_id, contract, deadline_ms. */
  get members() {
    return JSON.parse(this.#json);
  }
  get agent() {
    return this.members.agent;
  }
  get settings() {
    return JSON.parse(this.#settings || "{}");
  }
  /** `{state, responses}` where this call answers a question of the last one. */
  get resumed() {
    return this.#resumed == null ? undefined : JSON.parse(this.#resumed);
  }
  get isCancelled() {
    return progressOf.cancelled();
  }
  log(message) {
    log.info(message);
  }
  progress(done, total, message = "") {
    progressOf.report(done, total, shown(message));
  }
}

// ---- what the outside world offers ----

/** As bytes, which is all that the host takes: with anything else the call would trap, and a trap has no message. */
const bytesOf = (value, what) => {
  if (value === undefined || value instanceof Uint8Array || Array.isArray(value)) return value;
  throw new TypeError(`${what} is bytes: write \`new Uint8Array(…)\``);
};
const write = (level) => (message) => logOf.write(level, shown(message), undefined);
export const log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
export const clock = { nowMs: () => Number(clockOf.nowMs()) };
export const random = { bytes: (length) => randomOf.bytes(length) };
/** How many rows a query answers where its author names no limit. */
const ROWS_MAX = 1000;
/** A JavaScript number cannot hold integers beyond 2^53 exactly: a rounded key would be that of another row. */
const exact = (records) => {
  if (!/\d{16}/.test(records)) return records;
  // Without escapes every second part between quotes is a text.
  const outside = records.replace(/\\./g, "").split('"').filter((_, at) => at % 2 === 0);
  for (const [written] of outside.join(" ").matchAll(/-?\d[\d.eE+-]*/g)) {
    if (/^-?\d+$/.test(written) && !Number.isSafeInteger(Number(written))) {
      throw new RangeError("a whole number in the rows is beyond 2^53, which a number does not hold: cast it to text in the query");
    }
  }
  return records;
};
/** The parameters of a statement as JSON, which would write NaN as null, and bytes as an object. */
const bound = (parameters) =>
  JSON.stringify(parameters, function (name, inner) {
    const value = held(inner);
    const refused = (what) => {
      throw new TypeError(`a parameter of a statement is ${what}`);
    };
    if (typeof value === "number" && !Number.isFinite(value)) refused(value);
    if (value === null && this[name] !== null) refused("an invalid date");
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) refused("bytes: encode them as text");
    if (typeof value === "function" || typeof value === "symbol") refused(`a ${typeof value}`);
    return value;
  });
export const sql = {
  query: (connection, words, parameters = [], limit) => {
    const statement = { connection, text: words, parameters: bound(parameters), limit: limit ?? ROWS_MAX };
    const { records, truncated } = sqlOf.query(statement);
    if (truncated && limit == null) throw new RangeError(`there are more than ${ROWS_MAX} rows: name a limit, or ask for fewer`);
    return JSON.parse(exact(records));
  },
  execute: (connection, words, parameters = []) =>
    Number(sqlOf.execute({ connection, text: words, parameters: bound(parameters), limit: 1 })),
};
export const http = {
  send: ({ connection, method = "GET", path = "/", query = [], headers = [], body }) =>
    httpOf.send({ connection, method, path, query, headers, body: bytesOf(body, "a body") }),
};
export const files = {
  read: (root, path, offset = 0, length = 1 << 20) => filesOf.read(root, path, Number(offset), length),
  replace: (root, path, content, ifVersion) => filesOf.replace(root, path, ifVersion, bytesOf(content, "the content")),
};

// ---- the exports of a plugin ----

const error = (code, message, more = {}) => ({
  code,
  message,
  field: more.field,
  retryAfterMs: more.retryAfterMs,
  details: more.details === undefined ? undefined : json(more.details),
});

/** A thrown value that is not an error record would trap, and a trap has no message: every export is guarded. */
const guard = (f) => (...args) => {
  begin(logOf, randomOf);
  try {
    return f(...args);
  } catch (thrown) {
    throw recordOf(thrown);
  }
};

const recordOf = (thrown) => {
  if (thrown instanceof Refusal) {
    try {
      return error(thrown.reason, thrown.message, thrown);
    } catch (unwritten) {
      thrown = unwritten; // The details are not JSON.
    }
  }
  // What a call of the host has refused comes as an `Error` that carries the record. An `Error` of another library may have
  // its own code, and is not a record.
  const refused = thrown?.payload ?? (thrown instanceof Error ? undefined : thrown);
  if (typeof refused?.code === "string" && typeof refused.message === "string") return refused;
  // The text may contain a secret, so it is only logged.
  logOf.write("error", `The tool failed: ${described(thrown)}`, LOG_ONLY);
  return error("internal", "The tool failed; its operator finds the reason in the log.");
};

/** How many errors a failure names, and how many functions of each, the innermost ones. */
const ERRORS_MAX = 8;
const FRAMES_MAX = 4;

/** The error with what led to it: its causes, and the members of an `AggregateError`. */
const described = (thrown) => {
  const texts = [];
  const seen = new Set();
  const waiting = [{ words: "", error: thrown }];
  while (waiting.length > 0 && texts.length < ERRORS_MAX) {
    const { words, error } = waiting.shift();
    if (seen.has(error)) continue;
    seen.add(error);
    texts.push(words + placed(error));
    waiting.unshift(...reasons(error));
  }
  return texts.join("\n");
};

/** What led to the error, each with the words that lead to it. */
const reasons = (error) => {
  if (!(error instanceof Error)) return [];
  const members = error instanceof AggregateError && Array.isArray(error.errors) ? error.errors : [];
  const found = members.map((each) => ({ words: "with ", error: each }));
  return error.cause === undefined ? found : [...found, { words: "caused by ", error: error.cause }];
};

/** The error and where it was thrown, in the author's own files. */
const placed = (error) => {
  const stack = typeof error?.stack === "string" ? error.stack.split("\n") : [];
  const frames = stack.filter((line) => /^\s+at /.test(line) && !/[ (]\/sdk\/(weir|globals)\.js:/.test(line) && !line.includes("(native)"));
  return [shown(error), ...frames.slice(0, FRAMES_MAX)].join("\n");
};

/** The type to write for a value that none was declared for. */
const typeOf = (value) => {
  if (Array.isArray(value) || value instanceof Set) return "list(…)";
  if (value instanceof Map) return "map(…)";
  if (typeof value === "number") return Number.isInteger(value) ? "integer()" : "number()";
  return { string: "text()", boolean: "boolean()" }[typeof value] ?? "record({ … })";
};

/**
 * Tells of a value that no type was declared for: a tool that only reads fails. Any other answers without the value: what it
 * has written stays, and a caller who hears of a failure may call again.
 */
const leaveValueOut = ({ name, annotations }, value) => {
  const fault = `\`${name}\` returned a value and declares none: write \`returns: ${typeOf(value)}\``;
  if (annotations?.readOnlyHint) throw new TypeError(fault);
  logOf.write("error", `The value is left out of the answer: ${fault}`, LOG_ONLY);
};

const reply = ({ definition, returns }, value) => {
  if (value instanceof Question) {
    return { kind: "input-required", requests: json(value.requests), state: value.state };
  }
  if (typeof value?.then === "function") throw new TypeError(`\`${definition.name}\` is async: what a plugin calls has answered before it returns`);
  const content = value instanceof Answer ? json(value.content) : undefined;
  const plain = value instanceof Answer ? value.value : value;
  if (!returns && plain != null) leaveValueOut(definition, plain);
  if (!returns) return { kind: "complete", content: content ?? "[]" };
  if (plain === undefined || (plain === null && !holdsNull(returns))) {
    if (returns.optional) refuse("not_found", "There is nothing of that kind.");
    throw new TypeError(`\`${definition.name}\` returned nothing, against its \`returns\``);
  }
  return { kind: "complete", value: written(definition, within(returns, plain, leaveOut)), content };
};

/** The value as JSON, which has neither functions, nor cycles, nor a `BigInt`. */
const written = ({ name }, value) => {
  try {
    return json(value) ?? fail("it is a function, or a symbol");
  } catch (error) {
    const named = new TypeError(`what \`${name}\` returned is not JSON: ${error?.message ?? shown(error)}`);
    // The place is that of the author's own function, where one has thrown.
    named.stack = error?.stack ?? named.stack;
    throw named;
  }
};
const fail = (words) => {
  throw new TypeError(words);
};

/** `export const { about, tools } = plugin({ name, version, tools: [deploy] });` */
export const plugin = ({ name, version, tools }) => {
  if (typeof name !== "string" || typeof version !== "string") {
    throw new TypeError('a plugin has a name and a version: write `name: "deploys", version: "0.1.0"`');
  }
  if (!Array.isArray(tools)) throw new TypeError("`tools` is a list: write `tools: [deploy]`");
  const other = tools.findIndex((each) => !each?.definition);
  if (other >= 0) throw new TypeError(`\`tools[${other}]\` is not a tool: write \`const deploy = tool({ … })\``);
  const byName = new Map(tools.map((each) => [each.definition.name, each]));
  if (byName.size !== tools.length) throw new TypeError("two tools have one name");
  const requests = [...new Set(tools.flatMap((each) => each.requests))].sort();
  let settings = "";
  return {
    about: { about: () => JSON.stringify({ name, version, adapters: [], requests }) },
    tools: {
      configure: guard((given) => {
        settings = given;
      }),
      definitions: guard(() => json(tools.map((each) => each.definition))),
      call: guard((invocation) => {
        const called = byName.get(invocation.tool) ?? refuse("unsupported", `This plugin has no tool \`${invocation.tool}\`.`);
        const given = within({ fields: called.parameters }, JSON.parse(invocation.arguments), fill);
        return reply(called, called.run(given, new Context(invocation.context, invocation.resumed, settings)));
      }),
    },
  };
};

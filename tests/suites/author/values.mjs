// Values that functions in JavaScript are given and answer: run by node, outside a component.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

// The gateway's part is played here: what was logged is kept, and a query answers `rows`.
globalThis.logged = [];
globalThis.rows = { records: "[]", truncated: false };
const HOST = {
  logOf: "{ write: (level, message, fields) => globalThis.logged.push({ level, message, fields }) }",
  sqlOf: "{ query: (statement) => { globalThis.statement = statement; return globalThis.rows; } }",
};
const source = readFileSync(process.argv[2], "utf8")
  .replace(/^import \* as (\w+) from "weir:[^"]+";$/gm, (_, name) => `const ${name} = ${HOST[name] ?? "{}"};`);
const { anyOf, anything, boolean, integer, list, map, optional, plugin, record, refuse, set, sql, text, tool } =
  await import(`data:text/javascript,${encodeURIComponent(source)}`);

const call = (declared, given) => {
  const made = tool({ name: "it", run: (it) => it, ...declared });
  const { tools } = plugin({ name: "p", version: "1.0.0", tools: [made] });
  return tools.call({ tool: "it", arguments: JSON.stringify(given), context: "{}" });
};

// What is left out of a record is filled in, however deep the record is.
const paging = record({ size: integer({ default: 10 }), note: optional(text()), at: integer() });
const filled = { size: 10, note: null, at: 1 };
const empty = { size: 10, note: null, at: null };
for (const [parameters, given, expected] of [
  [{ paging }, { paging: { at: 1 } }, { paging: filled }],
  [{ paging }, { paging: { at: 1, size: 3, note: "n", more: true } }, { paging: { at: 1, size: 3, note: "n", more: true } }],
  [{ all: list(paging) }, { all: [{ at: 1 }, { at: 1 }] }, { all: [filled, filled] }],
  [{ all: set(paging) }, { all: [{ at: 1 }] }, { all: [filled] }],
  [{ all: map(paging) }, { all: { a: { at: 1 } } }, { all: { a: filled } }],
  [{ outer: record({ paging }) }, { outer: { paging: { at: 1 } } }, { outer: { paging: filled } }],
  [{ outer: record({ paging: optional(paging) }) }, { outer: {} }, { outer: { paging: null } }],
  [{ paging: record({ size: integer({ default: 10 }) }, { default: {} }) }, {}, { paging: { size: 10 } }],
  [{ all: list(optional(paging)) }, { all: [null, {}] }, { all: [null, empty] }],
  [{ any: anyOf([paging, text()]), all: anything() }, { any: {}, all: { a: [] } }, { any: {}, all: { a: [] } }],
  [{ version: text({ default: "latest" }), note: optional(text()) }, {}, { version: "latest", note: null }],
]) {
  let seen;
  call({ parameters, run: (it) => void (seen = it) }, given);
  assert.deepEqual(seen, expected, JSON.stringify(given));
}

// A default belongs to its type: what a function does to the value it is given changes no later call.
const options = record({ tags: list(text(), { default: [] }), size: integer({ default: 10 }) }, { default: {} });
const spoilt = tool({ name: "spoilt", parameters: { options }, run: ({ options }) => void (options.size = 11) });
const { tools } = plugin({ name: "p", version: "1.0.0", tools: [spoilt] });
const defined = tools.definitions();
tools.call({ tool: "spoilt", arguments: "{}", context: "{}" });
assert.equal(tools.definitions(), defined);

// What may be left out of an answer is left out where it is null.
const returns = record({ a: integer(), note: optional(text()), of: list(record({ b: optional(integer()) })), any: anything() });
const told = { a: 1, note: null, of: [{ b: null }, { b: 2 }], any: null };
assert.equal(call({ returns, run: () => told }, {}).value, '{"a":1,"of":[{},{"b":2}],"any":null}');
assert.equal(told.note, null, "the function's own value stays as it is");
assert.equal(call({ returns: list(optional(boolean())), run: () => [null, true] }, {}).value, "[null,true]");
const when = { toJSON: () => ({ b: 1 }) };
assert.equal(call({ returns: record({ b: optional(integer()) }), run: () => when }, {}).value, '{"b":1}');

// Whatever is thrown becomes a record, and its text goes to the log alone.
const INTERNAL = { code: "internal", message: "The tool failed; its operator finds the reason in the log." };
for (const [thrown, expected, words] of [
  [() => { throw new Error("a secret"); }, INTERNAL, "a secret"],
  [() => { throw Object.assign(new Error("a secret"), { code: "E_ORDER" }); }, INTERNAL, "a secret"],
  [() => { throw { code: 7, message: "a secret" }; }, INTERNAL, "[object Object]"],
  [() => { throw Object.create(null); }, INTERNAL, "has no text"],
  [() => refuse("busy", "Later.", { details: { until: 10n } }), INTERNAL, "BigInt"],
  [() => refuse("busy", "Later.", { details: { until: 10 } }), { code: "busy", message: "Later.", details: '{"until":10}' }],
  [() => { throw Object.assign(new Error("denied"), { payload: { code: "denied", message: "No." } }); }, { code: "denied", message: "No." }],
  [() => { throw { code: "denied", message: "No." }; }, { code: "denied", message: "No." }],
]) {
  globalThis.logged = [];
  let record;
  try { call({ run: thrown }, {}); } catch (caught) { record = caught; }
  assert.ok(record && !(record instanceof Error), `${record}`);
  assert.deepEqual(JSON.parse(JSON.stringify(record)), expected);
  const lines = globalThis.logged;
  assert.equal(lines.length, words ? 1 : 0, `${thrown}`);
  if (words) assert.ok(lines[0].message.includes(words) && JSON.parse(lines[0].fields)["weir.log_only"], JSON.stringify(lines));
}

// No row is rounded, and none is missing without a word.
const query = (records, truncated, ...more) => {
  globalThis.rows = { records, truncated };
  return sql.query("db", "SELECT", [], ...more);
};
for (const records of ['[{"a":9007199254740991,"b":-9007199254740991}]', '[{"a":"9007199254740993 \\" 9007199254740993"}]', '[{"a":1e+20,"b":12345678901234567.5}]']) {
  assert.deepEqual(query(records, false), JSON.parse(records));
}
assert.throws(() => query('[{"b":"\\\\","a":9007199254740993}]', false), /cast it to text/);
assert.throws(() => query('[{"a":-9223372036854775808}]', false), /cast it to text/);
assert.throws(() => query("[]", true), /more than 1000 rows/);
assert.equal(globalThis.statement.limit, 1000);
assert.deepEqual(query('[{"a":1}]', true, 1), [{ a: 1 }]);
assert.equal(globalThis.statement.limit, 1);

console.log("values are right");

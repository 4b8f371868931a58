// A plugin with tools, in JavaScript: one of each kind of answer that a tool may give.
import * as clock from "weir:plugin/clock@0.1.1";
import * as log from "weir:plugin/log@0.1.1";
import * as progress from "weir:plugin/progress@0.1.1";
import * as sql from "weir:plugin/sql@0.1.1";

// Other builds of this guest are made by changing this word: `renamed` renames a parameter of `deploy`, `wider` adds an
// optional one, and `stable` changes a default; `fix` changes what a tool does but no declaration, and `moody` declares
// something else each time.
const BUILD = "first";
const VERSION = { first: "1.0.0", renamed: "2.0.0", wider: "1.1.0", stable: "1.2.0", fix: "1.0.1", moody: "1.0.2" }[BUILD];
const SERVICE = BUILD === "renamed" ? "application" : "service";

const closed = (properties, required) => ({ type: "object", properties, required });
const text = (more) => ({ type: "string", ...more });

const DEFINITIONS = [
  {
    name: "deploy",
    title: "Deploy a service",
    description: "Deploy a service.",
    inputSchema: closed(
      {
        environment: text({ minLength: 1, description: "Target environment" }),
        [SERVICE]: text({ minLength: 1, description: "Service name." }),
        version: text({ default: BUILD === "stable" ? "stable" : "latest", description: "Version or image tag." }),
        ...(BUILD === "wider" && { region: text({ description: "Where it runs." }) }),
      },
      ["environment", SERVICE],
    ),
    outputSchema: { type: "object", additionalProperties: { type: "string" } },
    annotations: { idempotentHint: true },
    cli: { parameters: { environment: { positional: true } } },
  },
  {
    name: "steps",
    description: "Takes three steps and says how far it is after each.",
    inputSchema: closed({ pause_ms: { type: "integer", minimum: 0, maximum: 1000, default: 25 } }, []),
    outputSchema: { type: "integer" },
    annotations: { readOnlyHint: true },
  },
  {
    name: "crash",
    description: "Throws what is no error record.",
    inputSchema: closed({}, []),
  },
  {
    name: "refuse",
    description: "Refuses for a reason of its own.",
    inputSchema: closed({ code: text({ default: "too_early" }) }, []),
  },
  {
    name: "look",
    description: "Says that it only reads, and tries to write.",
    inputSchema: closed({}, []),
    annotations: { readOnlyHint: true },
  },
  {
    name: "rename",
    description: "Gives the first thing another name.",
    inputSchema: closed({ name: text({ minLength: 1, maxLength: 100 }) }, ["name"]),
    outputSchema: closed({ changed: { type: "integer" } }, ["changed"]),
  },
  {
    name: "names",
    description: "The names of all things.",
    inputSchema: closed({}, []),
    outputSchema: { type: "array", items: { type: "string" } },
    annotations: { readOnlyHint: true },
  },
  {
    name: "remove",
    description: "Removes an environment, once its caller has confirmed it.",
    inputSchema: closed({ environment: text({ minLength: 1 }) }, ["environment"]),
    outputSchema: closed({ removed: { type: "boolean" } }, ["removed"]),
    annotations: { destructiveHint: true },
  },
  {
    name: "draw",
    description: "Answers a picture, a link and an embedded text.",
    inputSchema: closed({}, []),
    annotations: { readOnlyHint: true },
  },
  {
    name: "wrong",
    description: "Answers something else than it declares.",
    inputSchema: closed({}, []),
    outputSchema: closed({ count: { type: "integer" } }, ["count"]),
    annotations: { readOnlyHint: true },
  },
  {
    name: "strange",
    description: "Answers what no answer is.",
    inputSchema: closed({ kind: text({ default: "later" }) }, []),
    annotations: { readOnlyHint: true },
  },
  {
    name: "whoami",
    description: "Answers who asked, and how often this instance was asked.",
    inputSchema: closed({}, []),
    outputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
  },
  {
    name: "spin",
    description: "Never answers.",
    inputSchema: closed({}, []),
    annotations: { readOnlyHint: true },
  },
];

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
    throw { code: "internal", message: "The tool failed; its operator finds the reason in the log." };
  }
};

const complete = (value) => ({ kind: "complete", value: JSON.stringify(value) });
const blocks = (...content) => ({ kind: "complete", content: JSON.stringify(content) });
const statement = (words, parameters) => ({
  connection: "db",
  text: words,
  parameters: JSON.stringify(parameters),
  limit: 100,
});

const wait = (milliseconds) => {
  const until = Number(clock.nowMs()) + milliseconds;
  // Calls of the host are bounded: the clock is looked at now and then.
  while (Number(clock.nowMs()) < until) for (let round = 0; round < 20_000; round += 1);
};

let settings = {};
let calls = 0;

const TOOLS = {
  deploy({ environment, [SERVICE]: service, version, region }) {
    log.write("info", `deploying ${service}`, undefined);
    const answer = { environment, service, version, region };
    return complete(BUILD === "fix" ? { ...answer, fixed: "yes" } : answer);
  },
  steps({ pause_ms }) {
    for (let done = 1; done <= 3; done += 1) {
      progress.report(done, 3, `step ${done}`);
      if (done < 3) wait(pause_ms);
    }
    return complete(3);
  },
  crash() {
    throw new Error("as asked");
  },
  refuse({ code }) {
    fail(code, "It is too early for that; ask again after noon.", undefined, 7);
  },
  look() {
    return complete(Number(sql.execute(statement("UPDATE things SET name = 'changed'", []))));
  },
  rename({ name }) {
    const changed = sql.execute(statement("UPDATE things SET name = ? WHERE id = 1", [name]));
    return complete({ changed: Number(changed) });
  },
  names() {
    const rows = JSON.parse(sql.query(statement("SELECT name FROM things ORDER BY id", [])).records);
    return complete(rows.map((row) => row.name));
  },
  remove({ environment }, _context, resumed) {
    if (resumed === null) {
      const params = {
        mode: "form",
        message: `Remove ${environment}?`,
        requestedSchema: { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] },
      };
      return {
        kind: "input-required",
        requests: JSON.stringify({ sure: { method: "elicitation/create", params } }),
        state: environment,
      };
    }
    if (resumed.state !== environment) fail("invalid_arguments", "Another environment was asked about.", "environment");
    const { sure } = resumed.responses;
    return complete({ removed: sure?.action === "accept" && sure.content?.sure === true });
  },
  draw() {
    return blocks(
      { type: "text", text: "A dot." },
      { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
      { type: "resource_link", uri: "https://example.org/dot", name: "dot" },
      { type: "resource", resource: { uri: "dot:///1", mimeType: "text/plain", text: "." } },
    );
  },
  wrong() {
    return complete({ count: "many" });
  },
  strange({ kind }) {
    return { kind, value: "{}" };
  },
  whoami(_arguments, context) {
    calls += 1;
    return complete({ ...JSON.parse(context), greeting: settings.greeting ?? null, calls });
  },
  spin() {
    for (;;);
  },
};

export const about = {
  about: guard(() => JSON.stringify({ name: "tools-js", version: VERSION, requests: ["sql"] })),
};

export const tools = {
  configure: guard((given) => {
    settings = JSON.parse(given);
    if (settings.refuse) fail("invalid", "These settings are refused, as asked.", "refuse");
  }),
  definitions: guard(() => {
    if (BUILD !== "moody") return JSON.stringify(DEFINITIONS);
    return JSON.stringify([{ ...DEFINITIONS[0], description: `Asked at ${clock.monotonicNs()} ns.` }]);
  }),
  call: guard(({ tool, arguments: given, context, resumed }) => {
    const run = TOOLS[tool] ?? fail("unsupported", "There is no such tool.");
    return run(JSON.parse(given), context, JSON.parse(resumed ?? "null"));
  }),
};

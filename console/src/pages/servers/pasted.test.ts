import { expect, test } from "vitest";
import { addLine, addSection, isSecretUrl, neededVariables } from "./added";
import { readServers, suggestName, type PastedServer } from "./pasted";

const read = (text: string) => readServers(text) as PastedServer[];
const only = (text: string) => read(text)[0] as PastedServer;

test.each([
  ["https://mcp.github.example/mcp", "github"],
  ["http://127.0.0.1:8080/mcp", "server"],
  ["npx -y @modelcontextprotocol/server-filesystem@1.2 /srv/shared", "filesystem"],
  ["uvx mcp-server-time --local-timezone=UTC", "time"],
  ["/opt/Weather.py", "weather"],
])("%s gets the name %s", (text, name) => {
  expect(only(text).name).toBe(name);
});

test("a client's configuration has its servers, by the names that it gives them", () => {
  const text = JSON.stringify({
    mcpServers: { "My Issues": { url: "https://issues.example/mcp", headers: { "X-Team": "a" } }, time: { command: "uvx", args: ["mcp-server-time"], env: { TZ: "UTC" } } },
  });
  expect(read(text)).toMatchObject([
    { name: "my-issues", url: "https://issues.example/mcp", headers: [{ name: "X-Team", value: "a" }], words: [] },
    { name: "time", url: "", words: ["uvx", "mcp-server-time"], environment: [{ name: "TZ", value: "UTC" }] },
  ]);
  expect(only('{"command": "uvx", "args": ["mcp-server-time"]}').name).toBe("time");
  expect(only('{"files": {"type": "sse", "url": "https://a.example/sse"}}')).toMatchObject({ name: "files", isSse: true });
});

test.each([
  ["{", "begins like JSON"],
  ["[1]", "not a configuration"],
  ['{"mcpServers": {"a": {}}}', "No entry"],
  ["https://", "not a complete URL"],
  ["ftp://a.example", "http or https"],
  ["npx 'a", "not closed"],
])("%s is refused with a reason", (text, reason) => {
  expect(readServers(text)).toContain(reason);
});

test("the line that adds a server survives a shell", () => {
  expect(addLine(only(`sh -c 'echo "it is" $HOME'`))).toBe(`weir upstream add sh -- sh -c 'echo "it is" $HOME'`);
  expect(addLine({ ...only("a"), words: ["a", "it's", ""] })).toBe(`weir upstream add a -- a 'it'\\''s' ''`);
});

test("a choice of tools is named by its file", () => {
  expect(addLine(only("uvx mcp-server-time"), "time.yaml")).toBe("weir upstream add time --overlay time.yaml -- uvx mcp-server-time");
  expect(addSection(only("https://a.example/mcp"), "a.yaml")).toContain('overlay = "a.yaml"');
});

test("no secret is written down", () => {
  const server = only(
    JSON.stringify({ gh: { url: "https://a.example/mcp", headers: { Authorization: "Bearer abc", "X-Api-Key": "${input:my-key}", "X-Team": "a b" } } }),
  );
  expect(addLine(server)).toBe(
    "weir upstream add gh https://a.example/mcp --header 'Authorization: Bearer ${env:GH_TOKEN}' --header 'X-Api-Key: ${env:MY_KEY}' --header 'X-Team: a b'",
  );
  expect(addSection(server)).toBe(
    `[upstreams.gh]\nurl = "https://a.example/mcp"\nheaders = { Authorization = "Bearer \${env:GH_TOKEN}", X-Api-Key = "\${env:MY_KEY}", X-Team = "a b" }`,
  );
  expect(neededVariables(server)).toEqual(["GH_TOKEN", "MY_KEY"]);
  const command = only('{"gh": {"command": "npx", "args": ["gh \\"x\\""], "env": {"GH_TOKEN": "abc", "TZ": "UTC"}}}');
  expect(addLine(command)).toBe(`weir upstream add gh --env GH_TOKEN --env TZ=UTC -- npx 'gh "x"'`);
  expect(addSection(command)).toBe(`[upstreams.gh]\ncommand = ["npx", "gh \\"x\\""]\nenv = { GH_TOKEN = "\${env:GH_TOKEN}", TZ = "UTC" }`);
});

test.each([
  ["https://a.example/mcp?api_key=abc", true],
  ["https://ann:abc@a.example/mcp", true],
  ["https://a.example/mcp?api_key=${env:KEY}&page=%25", false],
  ["https://a.example/mcp?team=abc", false],
])("whether %s holds a secret: %s", (url, isSecret) => {
  expect(isSecretUrl(url)).toBe(isSecret);
});

test.each([
  ["mcp-servers/everything", "servers-everything"],
  ["example-servers/everything", "example-servers-everything"],
  ["GitHub MCP Server", "github"],
  ["", null],
  ["123", null],
])("a server that calls itself %s is suggested as %s", (own, name) => {
  expect(suggestName(own)).toBe(name);
});

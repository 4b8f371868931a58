import { expect, test } from "vitest";
import { hostedSnippets, mcpAddress, snippets } from "./snippets";
import { relativeTime } from "./parts/words";
import { statusOf } from "./pages/key-status";

test("clients get the public address, or one that reaches the listener", () => {
  const http = (listen: string, open: string | null = null) => ({ http: { listen, public_url: open } });
  expect(mcpAddress(http("127.0.0.1:8484"))).toBe("http://127.0.0.1:8484/mcp");
  expect(mcpAddress(http("0.0.0.0:8484"), "desk")).toBe("http://127.0.0.1:8484/mcp/desk");
  expect(mcpAddress(http("[::]:8484"))).toBe("http://127.0.0.1:8484/mcp");
  expect(mcpAddress(http("0.0.0.0:1", "https://tools.example.org/"))).toBe("https://tools.example.org/mcp");
});

test("every snippet has the key, and none has one without a key", () => {
  for (const { text } of snippets("http://x/mcp", "weir_a_b")) expect(text).toContain("Bearer weir_a_b");
  for (const { text } of snippets("http://x/mcp", null)) expect(text).not.toContain("Bearer");
});

test("Claude Desktop starts a bridge, which is sent the key by a variable", () => {
  const desktop = (url: string, key: string | null) => JSON.parse(snippets(url, key).find(({ client }) => client === "Claude Desktop")?.text ?? "").mcpServers.weir;
  expect(desktop("http://127.0.0.1:8484/mcp", "weir_a_b")).toEqual({
    command: "npx",
    args: ["-y", "mcp-remote", "http://127.0.0.1:8484/mcp", "--header", "Authorization:${WEIR_AUTHORIZATION}"],
    env: { WEIR_AUTHORIZATION: "Bearer weir_a_b" },
  });
  expect(desktop("http://10.0.0.1:8484/mcp", null)).toEqual({ command: "npx", args: ["-y", "mcp-remote", "http://10.0.0.1:8484/mcp", "--allow-http"] });
});

test("each snippet states where it goes and what to do then", () => {
  for (const { place, after } of snippets("http://x/mcp", null)) expect([place, after].every((text) => text.endsWith("."))).toBe(true);
});

test("hosted clients get a URL and where people sign in, or what is missing first", () => {
  const all = (url: string, issuers: string[]) => hostedSnippets(url, issuers).map(({ after }) => after);
  for (const { text, after } of hostedSnippets("https://x/mcp", ["https://login.example/"])) {
    expect(text).toBe("https://x/mcp");
    expect(after).toContain("sign in at https://login.example/");
  }
  for (const after of all("http://x/mcp", ["https://login.example/"])) expect(after).toContain("public_url");
  for (const after of all("https://x/mcp", [])) expect(after).toContain("identity.issuers");
  expect(all("https://x/mcp", ["https://login.example/"])[0]).toContain("https://claude.ai/api/mcp/auth_callback");
});

test("times are written from now", () => {
  expect(relativeTime(0, 90_000)).toBe("1 minute ago");
  expect(relativeTime(3 * 86_400_000, 0)).toBe("in 3 days");
  expect(relativeTime(90 * 86_400_000 - 40, 0)).toBe("in 90 days");
  expect(relativeTime(-89.9 * 86_400_000, 0)).toBe("89 days ago");
});

test("a key that was revoked is not merely expired", () => {
  expect(statusOf({ revoked_ms: 5, expires_ms: 1 }, 10)).toBe("revoked");
  expect(statusOf({ revoked_ms: null, expires_ms: 10 }, 10)).toBe("expired");
  expect(statusOf({ revoked_ms: null, expires_ms: null }, 10)).toBe("valid");
});

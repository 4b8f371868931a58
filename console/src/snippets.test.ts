import { expect, test } from "vitest";
import { mcpAddress, snippets } from "./snippets";
import { relativeTime } from "./parts/words";
import { statusOf } from "./pages/key-status";

test("clients get the public address, or one that reaches the listener", () => {
  const http = (listen: string, open: string | null = null) => ({ http: { listen, public_url: open } });
  expect(mcpAddress(http("127.0.0.1:8484"))).toBe("http://127.0.0.1:8484/mcp");
  expect(mcpAddress(http("0.0.0.0:8484"), "desk")).toBe("http://127.0.0.1:8484/mcp/desk");
  expect(mcpAddress(http("[::]:8484"))).toBe("http://127.0.0.1:8484/mcp");
  expect(mcpAddress(http("0.0.0.0:1", "https://tools.example.org/"))).toBe("https://tools.example.org/mcp");
});

test("a key is in every snippet, and in none without one", () => {
  for (const { text } of snippets("http://x/mcp", "weir_a_b")) expect(text).toContain("Bearer weir_a_b");
  for (const { text } of snippets("http://x/mcp", null)) expect(text).not.toContain("Bearer");
});

test("times are said from now", () => {
  expect(relativeTime(0, 90_000)).toBe("1 minute ago");
  expect(relativeTime(3 * 86_400_000, 0)).toBe("in 3 days");
});

test("a key that was revoked is not merely expired", () => {
  expect(statusOf({ revoked_ms: 5, expires_ms: 1 }, 10)).toBe("revoked");
  expect(statusOf({ revoked_ms: null, expires_ms: 10 }, 10)).toBe("expired");
  expect(statusOf({ revoked_ms: null, expires_ms: null }, 10)).toBe("valid");
});

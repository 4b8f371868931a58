import { beforeAll, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://weir.test", hash: "" });
let sources: typeof import("./sources");
let answer = () => Response.json({});
const asked: { method: string; url: string; body: string }[] = [];

beforeAll(async () => {
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push({ method: request.method, url: request.url, body: await request.text() });
    return answer();
  });
  sources = await import("./sources");
});

beforeEach(() => {
  asked.length = 0;
});

test("rows of a source are asked for at its route", async () => {
  const rows = { columns: ["id"], rows: [{ id: 1 }], masked: ["token"], more: false };
  answer = () => Response.json(rows);
  expect(await sources.readRows("data", "tickets.csv")).toEqual(rows);
  const [{ method, url, body }] = asked as [(typeof asked)[0]];
  expect([method, url, JSON.parse(body)]).toEqual(["POST", "http://weir.test/v1/sources/rows", { connection: "data", source: "tickets.csv", limit: 10 }]);
});

test("a source that is not there is a refusal, and no empty answer", async () => {
  const problem = { type: "about:blank", status: 404, title: "Not Found", detail: "no connection has the name `gone`: see /v1/connections" };
  answer = () => Response.json(problem, { status: 404 });
  await expect(sources.draftSource("gone", "tickets.csv")).rejects.toThrow(problem.detail);
  await expect(sources.checkConnection("gone")).rejects.toThrow(problem.detail);
});

test("the name of a connection remains one part of the address", async () => {
  answer = () => Response.json({ ok: true, ms: 1 });
  await sources.checkConnection("a/b");
  expect(asked[0]?.url).toBe("http://weir.test/v1/connections/a%2Fb/check");
});

test("only the folders in the address of a file are kept as they are", () => {
  expect(sources.fileAddress("data", "2026/late & new?.csv")).toBe("/v1/files/data/2026/late%20%26%20new%3F.csv");
});

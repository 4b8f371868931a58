// What the console of an auditor asks the gateway for: the trail, and nothing that it would be refused.
import { beforeEach, expect, test, vi } from "vitest";

vi.mock("react", async (original) => ({ ...(await original<object>()), useEffect: (run: () => void) => void run() }));
vi.mock("@tanstack/react-query", () => ({ useQuery: (options: object) => options, useQueryClient: () => ({}) }));

vi.stubGlobal("location", { origin: "http://weir.test" });
const { useContracts, useDrafts } = await import("./api/queries");
const { useLiveEvents } = await import("./live");
const { readablePlaces } = await import("./places");
const { signIn } = await import("./session");

let asked: string[];

beforeEach(() => {
  vi.stubGlobal("sessionStorage", { setItem: () => undefined });
  vi.stubGlobal("document", { hidden: false, addEventListener: () => undefined });
});

function serve(role: string, approves = false) {
  asked = [];
  vi.stubGlobal("fetch", (address: string) => {
    asked.push(address);
    if (address === "/v1/session") return Promise.resolve(Response.json({ token: "weirses_1", role, approves, name: "ann" }));
    return new Promise(() => undefined);
  });
  return signIn("weiradm_key");
}

test("an auditor's console asks for no events and no lists, and shows the trail", async () => {
  await serve("auditor");
  useLiveEvents();
  expect(asked).toEqual(["/v1/session"]);
  expect([useContracts(), useDrafts()]).toMatchObject([{ enabled: false }, { enabled: false }]);
  expect(readablePlaces().map(({ href }) => href)).toEqual(["/audit"]);
});

test("a viewer's console asks for all lists", async () => {
  await serve("viewer");
  useLiveEvents();
  expect(asked).toEqual(["/v1/session", "/v1/events?calls=false"]);
  expect([useContracts(), useDrafts()]).toMatchObject([{ enabled: true }, { enabled: true }]);
  expect(readablePlaces().length).toBeGreaterThan(8);
});

test("someone who approves writes in addition to another role sees the pages of both", async () => {
  const read = () => readablePlaces().map(({ href }) => href);
  await serve("auditor", true);
  expect(read()).toEqual(["/approvals", "/audit"]);
  await serve("viewer", true);
  expect(read()).toEqual(expect.arrayContaining(["/approvals", "/contracts"]));
});

import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://weir.test" });
const { exportRecords } = await import("./trail");

test("an export has the filters of the page, without the length of a page", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return new Response("");
  });
  await exportRecords({ kind: "call", agent: undefined, call_id: "c_1", text: "sha256:ab", limit: 100 });
  await exportRecords({ call_id: "c_1" });
  expect(asked).toEqual(["/v1/audit/export?kind=call&call_id=c_1&text=sha256%3Aab", "/v1/audit/export?call_id=c_1"]);
});

// A write that waits for a person: what it would change, and each decision.
import AxeBuilder from "@axe-core/playwright";
import type { APIRequestContext, Page } from "@playwright/test";
import { ask, desk, expect, signIn, test } from "./gateway";

async function expectAccessible(page: Page) {
  const { violations } = await new AxeBuilder({ page }).exclude("[data-live-announcer]").analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id} ${nodes[0]?.target}`)).toEqual([]);
}

/** Publishes a desk over tickets of its own, whose subjects change only when a person approves it. */
async function publishGuarded(request: APIRequestContext, name: string) {
  const source = `${desk(name).replace("tickets.csv", "guarded.csv")}  - tool: ${name}_rename
    description: Changes the subject of a ticket.
    verb: update
    collection: tickets
    approval: required
    fields:
      - { name: id, type: number, required: true }
      - { name: subject, type: text, required: true }
`;
  const { status, body } = await ask(request, "POST", "/v1/contracts", { source });
  expect(status, JSON.stringify(body)).toBe(200);
}

async function callRename(request: APIRequestContext, name: string, subject: string) {
  const url = `${process.env.WEIR_CONSOLE_REST}/${name}/${name}_rename`;
  const headers = { Authorization: `Bearer ${(process.env.WEIR_CONSOLE_CALLER ?? "").trim()}` };
  const response = await request.post(url, { data: { id: 1, subject }, headers });
  return response.json();
}

test("an approver reads what a write would change, and lets it run once", async ({ page, request }) => {
  await publishGuarded(request, "guarda");
  const asked = await callRename(request, "guarda", "Approved in the console");
  expect(asked.code, JSON.stringify(asked)).toBe("approval_required");
  await signIn(page, "approver");
  const writes = page.getByRole("table", { name: "Writes" });
  await writes.getByRole("link", { name: "guarda_rename" }).click();
  const change = page.getByRole("table", { name: "What would change" });
  await expect(change.getByRole("row", { name: /subject/ })).toContainText("Approved in the console");
  await expectAccessible(page);
  await page.getByRole("button", { name: "Approve this write" }).click();
  await expect(page.getByRole("heading", { name: /guarda_rename/ })).toContainText("approved, not run yet");
  const done = await callRename(request, "guarda", "Approved in the console");
  expect(done.code, JSON.stringify(done)).toBeUndefined();
  await expect(page.getByRole("heading", { name: /guarda_rename/ })).toContainText("used", { timeout: 15_000 });
  const again = await callRename(request, "guarda", "Approved in the console again");
  expect(again.code).toBe("approval_required");
});

test("a write is rejected with a reason that its agent reads", async ({ page, request }) => {
  await publishGuarded(request, "guardb");
  await callRename(request, "guardb", "Not like this");
  await signIn(page, "operator", "/approvals");
  await page.getByRole("link", { name: "guardb_rename" }).click();
  await page.getByRole("button", { name: "Reject" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Why").fill("ask the customer first");
  await dialog.getByRole("button", { name: "Reject it" }).click();
  await expect(page.getByRole("heading", { name: /guardb_rename/ })).toContainText("rejected");
  await expect(page.getByText("ask the customer first")).toBeVisible();
  await expectAccessible(page);
});

// The trail: one call with its receipt and its place in the chain, receipts that callers kept, and the export.
import { readFileSync } from "node:fs";
import { ask, expect, publishDesk, signIn, test } from "./gateway";

test("a call is found by its id, with its receipt and the records beside it", async ({ page, request }) => {
  await publishDesk(request, "traila");
  const { body: tried } = await ask(request, "POST", "/v1/calls", { tool: "traila_create", arguments: { subject: "x", status: "open" }, agent: "caller" });
  await signIn(page, "viewer", "/audit");
  await page.getByLabel("Call id").fill(tried.call_id);
  const records = page.getByRole("table", { name: "Records", exact: true });
  await expect(records.getByRole("row")).toHaveCount(3);
  await records.getByRole("row", { name: /call traila_create/ }).getByRole("cell", { name: "traila_create" }).click();
  const drawer = page.getByRole("dialog", { name: "call traila_create" });
  await expect(drawer.getByText("caller called traila_create (traila@1.0.0): ok")).toBeVisible();
  await expect(drawer.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)).toBeVisible();
  await expect(drawer.getByRole("table", { name: "Records of this call" }).getByRole("row")).toHaveCount(3);
  await expect(drawer.getByRole("group", { name: "Record" })).toContainText('"outcome": "ok"');
  await drawer.getByRole("button", { name: /^The record before it/ }).click();
  await expect(page.getByRole("dialog").getByRole("button", { name: /^The record after it: call traila_create/ })).toBeVisible();
  await page.goto("/#/audit?kind=refused&record=" + new URL(page.url()).hash.split("record=")[1]);
  await page.reload();
  await expect(page.getByRole("dialog").getByRole("button", { name: /^The record after it: call traila_create/ })).toBeVisible();
});

test("receipts that callers kept are verified, and lead to their records", async ({ page, request }) => {
  await publishDesk(request, "trailb");
  const { body: tried } = await ask(request, "POST", "/v1/calls", { tool: "trailb_list", arguments: {}, agent: "caller" });
  const [chain, number] = tried.receipt.split(":");
  await signIn(page, "viewer", "/audit");
  await page.getByRole("button", { name: "Verify the trail" }).click();
  const form = page.getByRole("dialog", { name: "Verify the trail" });
  // One press verifies, and the button keeps the focus.
  await expect(form.getByRole("status").filter({ hasText: "No record was changed" })).toBeVisible();
  await expect(form.getByRole("list", { name: "Open ends" }).getByRole("listitem").first()).toContainText("after record");
  const field = form.getByLabel("Receipts that callers kept");
  await field.fill("no receipt");
  await expect(form.getByText("There is no whole receipt in this.")).toBeVisible();
  await expect(form.getByRole("button", { name: "Verify it again" })).toBeDisabled();
  await field.fill(`{"receipt":"${tried.receipt}"}\n${chain}:${number}:${"0".repeat(64)}`);
  await form.getByRole("button", { name: "Verify the trail and the receipts" }).click();
  await expect(form.getByRole("status")).toBeVisible();
  const checked = form.getByRole("list", { name: "Receipts" }).getByRole("listitem");
  await expect(checked).toHaveText([/present.*trailb_list/, /replaced/]);
  await field.fill("");
  const again = form.getByRole("button", { name: "Verify it again" });
  await again.press("Enter");
  await expect(form.getByRole("status").filter({ hasText: "No record was changed" })).toBeVisible();
  await expect(again).toBeFocused();
  await field.fill(tried.receipt);
  await form.getByRole("button", { name: "Verify the trail and the receipts" }).click();
  await checked.getByRole("button", { name: "Open it" }).click();
  await expect(page.getByRole("group", { name: "Record" })).toContainText('"tool": "trailb_list"');
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
});

test("what fits the filters is exported as it was written", async ({ page, request }) => {
  await publishDesk(request, "trailc");
  await ask(request, "POST", "/v1/calls", { tool: "trailc_list", arguments: {}, agent: "caller" });
  await signIn(page, "viewer", "/audit?tool=trailc_list");
  const started = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  const file = await (await started).path();
  const lines = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  expect(lines.map(({ tool }) => tool)).toEqual(["trailc_list"]);
});

test("the proof of one record is a file", async ({ page, request }) => {
  await publishDesk(request, "trailg");
  const { body: tried } = await ask(request, "POST", "/v1/calls", { tool: "trailg_list", arguments: {}, agent: "caller" });
  await signIn(page, "viewer", `/audit?record=${tried.receipt.split(":")[2]}`);
  const started = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download proof" }).click();
  const proof = JSON.parse(readFileSync(await (await started).path(), "utf8"));
  expect(proof.receipt).toBe(tried.receipt);
  expect(JSON.parse(proof.lines[0]).tool).toBe("trailg_list");
});

test("a call that was tried is one click from its records", async ({ page, request }) => {
  await publishDesk(request, "traild");
  await signIn(page, "editor", "/try?tool=traild_list&agent=caller");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByRole("link", { name: "Open in audit" }).click();
  await expect(page.getByRole("table", { name: "Records", exact: true }).getByRole("row", { name: /call traild_list/ })).toBeVisible();
});

test("older records begin where the page ends", async ({ page, request }) => {
  await publishDesk(request, "traile");
  for (let call = 0; call < 101; call += 1) await ask(request, "POST", "/v1/calls", { tool: "traile_list", arguments: {}, agent: "caller" });
  await signIn(page, "viewer", "/audit?tool=traile_list");
  const rows = page.getByRole("table", { name: "Records", exact: true }).getByRole("row");
  await expect(rows).toHaveCount(101);
  const last = await rows.last().getByRole("cell").last().textContent();
  await page.getByRole("button", { name: "Older" }).click();
  await expect(rows).toHaveCount(2);
  expect(await rows.last().getByRole("cell").last().textContent()).not.toBe(last);
  await page.getByRole("button", { name: "Back to the newest" }).click();
  await expect(rows).toHaveCount(101);
});

test("records are found by two days and an agent that is offered, also on a narrow page", async ({ page, request }) => {
  await publishDesk(request, "trailf");
  await ask(request, "POST", "/v1/calls", { tool: "trailf_list", arguments: { status: "nope" }, agent: "caller" });
  await signIn(page, "viewer", "/audit?tool=trailf_list");
  const rows = page.getByRole("table", { name: "Records", exact: true }).getByRole("row");
  await expect(rows).toHaveCount(2);
  await expect(page.locator("datalist option[value=caller]")).toHaveCount(1);
  const today = new Date().toISOString().slice(0, 10);
  await page.getByLabel("From", { exact: true }).fill(today);
  await page.getByLabel("To", { exact: true }).fill(today);
  await expect(page).toHaveURL(new RegExp(`since=${today}&to=${today}`));
  await expect(rows).toHaveCount(2);
  await page.getByLabel("To", { exact: true }).fill("2026-01-01");
  await expect(page.getByText("This day is before the first one.")).toBeVisible();
  await page.getByLabel("From", { exact: true }).fill("2026-01-01");
  await expect(page.getByText("No record fits the filters")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.setViewportSize({ width: 400, height: 800 });
  await expect(page.getByLabel("To", { exact: true })).toBeHidden();
  await page.getByText("Filters (3)").click();
  await page.getByLabel("To", { exact: true }).fill(today);
  await expect(page.getByRole("table", { name: "Records", exact: true })).toBeVisible();
});

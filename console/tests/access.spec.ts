// Keys in the place of others, who is signed in, what policies say, and what waits for the next start.
import { ask, expect, publishDesk, signIn, test } from "./gateway";

test("a key is rotated: the new one may the same, and the old one stays valid until it is revoked", async ({ page, request }) => {
  await publishDesk(request, "accessa");
  const asked = { agent: "rotated", access: { contracts: ["accessa"], tools: [] }, limits: { rate: "50/min" }, expires_in_s: 30 * 86_400 };
  const { body: old } = await ask(request, "POST", "/v1/keys", asked);
  await signIn(page, "operator", "/keys?q=rotated");
  await page.getByRole("button", { name: "Rotate the key of rotated" }).click();
  const drawer = page.getByRole("dialog", { name: "Rotate a key" });
  await expect(drawer.getByLabel("Expires")).toHaveValue("30");
  await drawer.getByRole("button", { name: "Make the new key" }).click();
  await expect(drawer.getByRole("group", { name: "The key" })).toContainText(/^weir_/);
  const keys = async () => (await ask(request, "GET", "/v1/keys")).body.filter(({ agent }: { agent: string }) => agent === "rotated");
  const [first, second] = (await keys()).sort((a: { created_ms: number }, b: { created_ms: number }) => a.created_ms - b.created_ms);
  expect([first.id, first.revoked_ms ?? null]).toEqual([old.id, null]);
  expect([second.access, second.limits.rate, second.tenant]).toEqual([first.access, "50/min", first.tenant]);
  await drawer.getByRole("button", { name: "Revoke the old key" }).click();
  await expect(drawer.getByRole("status").filter({ hasText: "The old key is revoked." })).toBeVisible();
  expect((await keys()).find(({ id }: { id: string }) => id === old.id).revoked_ms).not.toBeNull();
  await drawer.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("table", { name: "Keys" }).getByRole("row")).toHaveCount(2);
});

test("an operator sees who is signed in and ends a session, and a viewer does not", async ({ page, browser, baseURL }) => {
  const other = await (await browser.newContext({ baseURL })).newPage();
  await signIn(other, "approver");
  await signIn(page, "operator", "/settings?tab=sessions");
  const sessions = page.getByRole("table", { name: "Sessions" });
  await expect(sessions.getByText("this one")).toHaveCount(1);
  await sessions.getByRole("button", { name: "End the session of approver" }).first().click();
  await expect.poll(async () => (await other.evaluate(async () => fetch("/v1/session", { headers: { Authorization: `Bearer ${sessionStorage.getItem("weir.session")}` } }).then(({ status }) => status)))).toBe(401);
  await other.context().close();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, "viewer", "/settings?tab=sessions");
  await expect(page.getByText("an operator may do this; your role is viewer")).toBeVisible();
});

test("policies are asked about a call that is not made", async ({ page }) => {
  await signIn(page, "viewer", "/settings?tab=policies");
  await page.getByText("Check a call").click();
  const form = page.getByRole("form", { name: "Check a call" });
  await form.getByLabel("Name").fill("caller");
  await form.getByLabel("Tool").selectOption("filed_list");
  await form.getByLabel("Arguments as JSON").fill('{"status": "closed"}');
  await form.getByRole("button", { name: "Check" }).click();
  const decision = form.getByRole("status");
  await expect(decision).toContainText("deny");
  await expect(decision).toContainText("no-closed. The caller reads: Closed tickets are for people.");
  await form.getByLabel("Arguments as JSON").fill("{}");
  await form.getByRole("button", { name: "Check" }).click();
  await expect(decision).toContainText("It runs.");
});

test("the configuration says what waits for the next start, and is reloaded", async ({ page }) => {
  await signIn(page, "operator", "/settings");
  const http = page.locator("section").filter({ has: page.getByRole("heading", { name: "[http]" }) });
  await expect(http.locator("dd").filter({ hasText: "next start" }).first()).toBeVisible();
  await expect(page.locator("section").filter({ has: page.getByRole("heading", { name: "[identity]" }) })).toBeVisible();
  await page.getByRole("button", { name: "Reload the configuration" }).click();
  await expect(page.getByRole("status").filter({ hasText: "The file is what is in effect." })).toBeVisible();
  await page.getByRole("tab", { name: "Nodes" }).click();
  await expect(page.getByRole("heading", { name: "A single gateway" })).toBeVisible();
});

test("a contract names its callers", async ({ page, request }) => {
  await publishDesk(request, "accessb");
  await signIn(page, "viewer", "/contracts/accessb?tab=callers");
  await expect(page.getByText("No valid call in the last 7 days")).toBeVisible();
  for (let call = 0; call < 2; call += 1) await ask(request, "POST", "/v1/calls", { tool: "accessb_list", agent: "caller", arguments: {} });
  const row = page.getByRole("table", { name: "Callers of this contract" }).getByRole("row", { name: /caller/ });
  await expect(row).toContainText("accessb_list", { timeout: 15_000 });
  await expect(row.locator("[data-label='Calls']")).toHaveText("2");
  await row.getByRole("link", { name: "Its calls" }).click();
  await expect(page.getByRole("table", { name: "Records", exact: true }).getByRole("row", { name: /call accessb_list/ }).first()).toBeVisible();
});

test("a trail that cannot be written is red, with what to do", async ({ page }) => {
  await page.route("**/v1/stats**", async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    body.since_start.is_audit_failing = true;
    await route.fulfill({ response: answer, json: body });
  });
  await page.route("**/v1/events**", (route) => route.abort());
  await signIn(page, "viewer");
  await expect(page.getByText("The trail cannot be written, so calls are refused.")).toBeVisible();
  await page.goto("/#/audit");
  await expect(page.getByRole("alert")).toContainText("Look at the disk of the state folder");
});

test("a plugin is uploaded, and one that is none is refused with the reason", async ({ page }) => {
  await signIn(page, "operator", "/plugins");
  const plugins = page.getByRole("table", { name: "Plugins" });
  await expect(plugins.getByRole("row", { name: /sheet/ })).toBeVisible();
  await page.locator("input[type=file]").setInputFiles({ name: "nothing.wasm", mimeType: "application/wasm", buffer: Buffer.from("no component") });
  await expect(page.getByRole("alert")).toContainText(/component/i);
  await expect(plugins.getByRole("row", { name: /nothing/ })).toHaveCount(0);
});

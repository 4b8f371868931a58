import { ask, desk, expect, keyOf, publishDesk, signIn, test } from "./gateway";

test("a link signs in once and leaves the address at once", async ({ page, request }) => {
  const { body } = await ask(request, "POST", "/v1/session/link");
  await page.goto(body.path);
  await expect(page.getByText("operator", { exact: true }).first()).toBeVisible();
  expect(page.url()).not.toContain("link");
  await page.evaluate(() => sessionStorage.clear());
  await page.goto("about:blank");
  await page.goto(body.path);
  await expect(page.getByText("the link was used")).toBeVisible();
});

test("an admin key becomes a session that signing out ends", async ({ page, request }) => {
  await page.goto(`/#token=${keyOf("operator")}`);
  await expect(page.getByText("operator", { exact: true }).first()).toBeVisible();
  expect(page.url()).not.toContain("token");
  expect(await page.evaluate(() => document.documentElement.outerHTML)).not.toContain(keyOf("operator"));
  const kept = await page.evaluate(() => sessionStorage.getItem("weir.session") ?? "");
  expect(kept).toMatch(/^weirses_/);
  const read = () => request.get("/v1/session", { headers: { Authorization: `Bearer ${kept}` } });
  expect((await read()).status()).toBe(200);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
  await expect.poll(async () => (await read()).status()).toBe(401);
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

test("a link that is pasted into the open page signs in and leaves the address", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
  await page.evaluate((key) => location.assign(`#token=${key}`), keyOf("operator"));
  await expect(page.getByText("operator", { exact: true }).first()).toBeVisible();
  expect(page.url()).not.toContain("token");
});

test("a link that is no encoded text is refused", async ({ page }) => {
  await page.goto("/#token=%");
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
  expect(page.url()).not.toContain("token");
});

test("signing out in one tab is signing out in all", async ({ page, context }) => {
  await signIn(page, "viewer");
  const other = await context.newPage();
  await other.goto("/");
  await expect(other.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.reload();
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
  await other.reload();
  await expect(other.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
});

test("a session outlives a gateway that does not answer", async ({ page }) => {
  await signIn(page, "viewer");
  await page.route("**/v1/session", (route) => route.abort());
  await page.reload();
  await expect(page.getByText("Nothing answers at this address now")).toBeVisible();
  await page.unroute("**/v1/session");
  await page.reload();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
});

test("a key that the gateway does not take is reported", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Admin key").fill("weiradm_no_such");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("alert")).toContainText("the admin key is not valid");
});

test("another tab has the session too", async ({ page, context }) => {
  await signIn(page, "viewer");
  const other = await context.newPage();
  await other.goto("/");
  await expect(other.getByRole("navigation", { name: "Pages" })).toBeVisible();
});

test("errors are repaired on their fields, and a hostile record stays text", async ({ page, request }) => {
  await publishDesk(request, "worka");
  await signIn(page, "operator", "/try?tool=worka_create&agent=caller");
  await page.getByLabel("subject").fill("Printer <img src=x onerror=document.title='owned'>");
  await page.getByRole("button", { name: "Check" }).click();
  await expect(page.getByText("must be one of open, pending, closed").or(page.getByText("is required")).first()).toBeVisible();
  await expect(page.getByLabel("status")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("status").selectOption("open");
  await page.getByRole("button", { name: "Call: it writes to worka" }).click();
  const records = page.getByRole("group", { name: "Records" });
  await expect(records).toContainText("<img src=x onerror=");
  expect(await records.locator("img").count()).toBe(0);
  expect(await page.title()).not.toBe("owned");
});

test("a number stays as it is typed, and keeps its digits", async ({ page, request }) => {
  const source = desk("workg").replace("    fields:\n", "    fields:\n      - { name: id, type: number, help: \"The number of the ticket.\" }\n");
  expect((await ask(request, "POST", "/v1/contracts", { source })).status).toBe(200);
  await signIn(page, "operator", "/try?tool=workg_list&agent=caller");
  const field = page.getByLabel("id", { exact: true });
  await field.pressSequentially("1.05");
  await expect(field).toHaveValue("1.05");
  await expect(page).toHaveURL(/1\.05/);
  await field.fill("9007199254740993");
  await page.getByRole("button", { name: "As JSON" }).click();
  await expect(page.getByLabel("Arguments as JSON")).toHaveValue(/"id": 9007199254740993/);
});

test("Ctrl + Enter calls once, and not without the role", async ({ page, request }) => {
  await publishDesk(request, "workh");
  let calls = 0;
  await page.route("**/v1/calls", async (route) => {
    calls += 1;
    await route.continue();
  });
  await signIn(page, "editor", "/try?tool=workh_create&agent=caller");
  await page.getByLabel("subject").fill("x");
  await page.keyboard.press("Control+Enter");
  await page.goto("/#/try?tool=workh_list&agent=caller");
  await page.getByLabel("status").focus();
  await page.keyboard.press("Control+Enter");
  await expect(page.getByRole("group", { name: "Records" }).or(page.getByRole("heading", { name: "Result" })).first()).toBeVisible();
  expect(calls).toBe(1);
});

test("the agent that is shown is the one that calls", async ({ page, request }) => {
  await publishDesk(request, "worki");
  await signIn(page, "editor", "/try?tool=worki_list");
  const agent = page.getByLabel("As the agent");
  await expect(agent).toHaveValue("caller");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByRole("definition").filter({ hasText: /^caller$/ })).toBeVisible();
});

test("a suggestion is one click away", async ({ page, request }) => {
  await publishDesk(request, "workb");
  const wrong = encodeURIComponent(JSON.stringify({ status: "opn" }));
  await signIn(page, "editor", `/try?tool=workb_list&agent=caller&arguments=${wrong}`);
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("button", { name: 'Use "open"' }).click();
  await expect(page.getByLabel("status")).toHaveValue("0");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByRole("group", { name: "Records" })).toBeVisible();
});

test("a fault that no field shows is shown above them, and a list is turned page by page", async ({ page, request }) => {
  await publishDesk(request, "workj");
  const odd = encodeURIComponent(JSON.stringify({ nope: 1, limit: 1 }));
  await signIn(page, "editor", `/try?tool=workj_list&agent=caller&arguments=${odd}`);
  await page.getByRole("button", { name: "Check" }).click();
  await expect(page.getByRole("alert")).toContainText("/nope is not an argument of this tool");
  const one = encodeURIComponent(JSON.stringify({ limit: 1 }));
  await page.goto(`/#/try?tool=workj_create`);
  await page.goto(`/#/try?tool=workj_list&agent=caller&arguments=${one}`);
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByRole("group", { name: "Records" })).toContainText("Printer is out of paper");
  await page.getByRole("button", { name: "Next page" }).click();
  await expect(page.getByRole("group", { name: "Records" })).toContainText("Lights flicker");
});

test("an editor may not call what writes, and reads who may", async ({ page, request }) => {
  await publishDesk(request, "workc");
  await signIn(page, "editor", "/try?tool=workc_create&agent=caller");
  await expect(page.getByRole("button", { name: "Call: it writes to workc" })).toBeDisabled();
  await expect(page.getByText("an operator may do this; your role is editor")).toBeVisible();
});

test("a call that a policy denies names the policy, in the trial, the trail and the settings", async ({ page }) => {
  const closed = encodeURIComponent(JSON.stringify({ status: "closed" }));
  await signIn(page, "editor", `/try?tool=filed_list&agent=caller&arguments=${closed}`);
  await page.getByRole("button", { name: "Call", exact: true }).click();
  const decision = page.getByRole("region", { name: "Policy decision" });
  await expect(decision).toContainText("denied");
  await expect(decision).toContainText("no-closed: Closed tickets are for people.");
  await page.getByRole("link", { name: "Open in audit" }).click();
  await page.getByRole("table", { name: "Records", exact: true }).getByRole("button").first().click();
  await page.getByRole("dialog").getByRole("region", { name: "Policy decision" }).getByRole("link", { name: "no-closed" }).click();
  const policies = page.getByRole("table", { name: "Policies" });
  await expect(policies.getByRole("row", { name: /no-closed/ })).toHaveAttribute("aria-current", "true");
  await expect(policies).toContainText("each call, by its arguments");
  await page.goto("/#/try?tool=filed_list&agent=caller");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByText("allowed by policies")).toBeVisible();
});

test("a key is shown once, works, and is revoked", async ({ page, request }) => {
  await publishDesk(request, "workd");
  await signIn(page, "operator", "/keys");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByLabel("Agent").fill("robot");
  await page.getByLabel("workd", { exact: true }).check();
  await page.getByLabel("Calls in a day").fill("0");
  await expect(page.getByRole("button", { name: "Make the key" })).toBeDisabled();
  await page.getByLabel("Calls in a day").fill("1000");
  await page.getByRole("button", { name: "Make the key" }).click();
  const key = (await page.getByRole("group", { name: "The key" }).textContent()) ?? "";
  expect(key).toMatch(/^weir_/);
  await expect(page.getByRole("group", { name: "For Claude Code" })).toContainText(key);
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("row", { name: /robot/ })).toContainText("1,000 a day");
  await page.getByRole("button", { name: "Revoke the key of robot" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByRole("row", { name: /robot/ })).toBeHidden();
  const { body } = await ask(request, "GET", "/v1/keys");
  expect(body.find((view: { agent: string }) => view.agent === "robot").revoked_ms).not.toBeNull();
});

test("a page that fails leaves the way to the others", async ({ page }) => {
  await page.route("**/assets/keys-*.js", (route) => route.fulfill({ status: 404 }));
  await signIn(page, "viewer", "/keys");
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByRole("link", { name: "Tools" }).click();
  await expect(page.getByRole("heading", { name: "Tools", level: 1 })).toBeVisible();
});

test("everything is reached by keyboard", async ({ page, request }) => {
  await publishDesk(request, "workf");
  await signIn(page, "viewer", "/contracts");
  await expect(page.getByRole("link", { name: "workf" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("workf_create");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "workf_create" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
  await page.reload();
  await expect(page.getByRole("heading", { name: "Tools", level: 1 })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "To the content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("main")).toBeFocused();
});

test("the figures of the page are those that Prometheus reads", async ({ page, request }) => {
  await publishDesk(request, "figures");
  for (let calls = 0; calls < 30; calls += 1) {
    const { status } = await ask(request, "POST", "/v1/calls", { tool: "figures_list", agent: "caller", arguments: {} });
    expect(status).toBe(200);
  }
  const metrics = await request.get("/metrics", { headers: { Authorization: `Bearer ${keyOf("operator")}` } });
  const line = (await metrics.text()).split("\n").find((line) => line.startsWith("weir_calls_total{") && line.includes('tool="figures_list"') && line.includes('outcome="ok"'));
  expect(line).toMatch(/ 30$/);
  await signIn(page, "viewer");
  const tools = page.getByRole("table", { name: "Tools" });
  await expect(tools.getByRole("row", { name: /figures_list/ })).toContainText("30");
  // Each call is on the page with the next event, and those come each second. A busy machine may delay some of them.
  const delays: number[] = [];
  for (let calls = 31; calls <= 36; calls += 1) {
    await ask(request, "POST", "/v1/calls", { tool: "figures_list", agent: "caller", arguments: {} });
    const ended = Date.now();
    await expect(tools.getByRole("row", { name: /figures_list/ })).toContainText(String(calls), { timeout: 15_000 });
    delays.push(Date.now() - ended);
  }
  // The first came at any moment between two events.
  expect(Math.min(...delays.slice(1)), `${delays}`).toBeLessThan(1_500);
});

test("a viewer reads that a trial is for editors, and revokes no key", async ({ page, request }) => {
  await publishDesk(request, "workv");
  await signIn(page, "viewer", "/try?tool=workv_list&agent=caller");
  const [sentence, form] = [page.getByText(/A trial is a real call/), page.getByRole("region", { name: "Arguments" })];
  expect((await sentence.boundingBox())?.y ?? Infinity).toBeLessThan((await form.boundingBox())?.y ?? 0);
  await page.goto("/#/keys");
  await expect(page.getByRole("button", { name: /^Revoke the key of caller/ }).first()).toBeDisabled();
});

test("signing out and the button that calls stay in sight on a low page", async ({ page, request }) => {
  await publishDesk(request, "workl");
  await page.setViewportSize({ width: 1280, height: 500 });
  await signIn(page, "operator", "/try?tool=workl_create&agent=caller");
  await expect(page.getByRole("button", { name: "Sign out" })).toBeInViewport({ ratio: 1 });
  await expect(page.getByRole("button", { name: "Call: it writes to workl" })).toBeInViewport({ ratio: 1 });
  await expect(page.getByText("Build", { exact: true })).toBeVisible();
});

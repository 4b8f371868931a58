import { ask, breakDesk, desk, expect, publishDesk, signIn, test, writeContract } from "./gateway";

test("a breaking draft shows what breaks, a witness and the callers, and an operator publishes it", async ({ page, request }) => {
  await publishDesk(request, "gatea");
  await ask(request, "POST", "/v1/calls", { tool: "gatea_list", arguments: { status: "closed" }, agent: "caller" });
  await breakDesk(request, "gatea");
  await signIn(page, "operator", "/drafts");
  await page.getByRole("link", { name: "gatea" }).click();
  const change = page.getByRole("region", { name: "gatea_list" });
  await expect(change.getByText("/properties/status/enum")).toBeVisible();
  await expect(change.getByText('no longer one of the values: "closed"')).toBeVisible();
  await expect(change.getByText('"status": "closed"')).toBeVisible();
  await expect(page.getByRole("table", { name: "Callers" }).getByRole("row", { name: /caller/ })).toContainText("1 of 1");
  await page.getByRole("button", { name: "Approve the breaking change" }).click();
  const publish = page.getByRole("dialog").getByRole("button", { name: "Publish" });
  await expect(publish).toBeDisabled();
  await expect(page.getByRole("dialog").getByRole("textbox")).toBeFocused();
  await page.keyboard.type("gatea");
  await expect(publish).toBeEnabled();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("group", { name: "Decision" })).toBeHidden();
  await expect(page.getByRole("status", { name: "What became of it" })).toContainText(/^Published by .*Agents are served 2\.0\.0\.$/);
  await expect(page.getByText("until someone agrees")).toHaveCount(0);
  const { body } = await ask(request, "GET", "/v1/contracts/gatea");
  expect(body.version).toBe("2.0.0");
});

test("an editor sees who may publish what breaks, and may reject it", async ({ page, request }) => {
  await publishDesk(request, "gateb");
  const { draft } = await breakDesk(request, "gateb");
  await signIn(page, "editor", `/contracts/gateb?tab=drafts&draft=${draft}`);
  await expect(page.getByRole("button", { name: "Approve the breaking change" })).toBeDisabled();
  await expect(page.getByText("an operator may do this; your role is editor")).toBeVisible();
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
  await expect(page.getByRole("group", { name: "Decision" })).toBeHidden();
  await expect(page.getByRole("status", { name: "What became of it" })).toContainText(/^Rejected by .*Agents are served 1\.0\.0\.$/);
  const { body } = await ask(request, "GET", `/v1/drafts/${draft}`);
  expect(body.status).toBe("discarded");
});

test("a viewer decides nothing", async ({ page, request }) => {
  await publishDesk(request, "gatec");
  const { draft } = await breakDesk(request, "gatec");
  await signIn(page, "viewer", `/contracts/gatec?tab=drafts&draft=${draft}`);
  await expect(page.getByRole("button", { name: "Approve the breaking change" })).toBeDisabled();
  await expect(page.getByRole("button", { name: "Reject" })).toBeDisabled();
});

test("what was decided meanwhile is shown, and nothing is published", async ({ page, request }) => {
  await publishDesk(request, "gated");
  const { draft } = await breakDesk(request, "gated");
  await signIn(page, "operator", `/contracts/gated?tab=drafts&draft=${draft}`);
  await page.getByRole("button", { name: "Approve the breaking change" }).click();
  await page.getByRole("dialog").getByRole("textbox").fill("gated");
  await ask(request, "POST", `/v1/drafts/${draft}/discard`);
  await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("Nothing was published")).toBeVisible();
  await expect(page.getByRole("alert")).toContainText("It changed meanwhile");
  const { body } = await ask(request, "GET", "/v1/contracts/gated");
  expect(body.version).toBe("1.0.0");
});

test("work rests on what it began with, and on each submission after it", async ({ page, request }) => {
  const text = (words: string) => desk("gateg").replace("Lists tickets by status.", words);
  await publishDesk(request, "gateg");
  await signIn(page, "editor", "/builder?contract=gateg&pane=yaml");
  const editor = page.getByRole("textbox", { name: "Contract as YAML" });
  const outcome = page.getByRole("region", { name: "Outcome" });
  for (const [words, version] of [["Lists tickets.", "1.0.1"], ["Lists the tickets.", "1.0.2"]]) {
    await writeContract(page, text(words ?? ""));
    await page.getByRole("button", { name: "Submit" }).click();
    await expect(outcome.getByRole("link", { name: `gateg@${version}` })).toBeVisible();
  }
  await page.getByLabel("Hold it for review in any case").check();
  for (const words of ["Lists some.", "Lists a few."]) {
    await writeContract(page, text(words));
    await page.getByRole("button", { name: "Submit" }).click();
    await expect(outcome.getByText("held")).toBeVisible();
  }
  expect((await ask(request, "GET", "/v1/drafts?contract=gateg&status=superseded")).body).toHaveLength(1);
  await writeContract(page, text("Lists mine."));
  await expect(page.getByText("this browser keeps it")).toBeVisible();
  expect((await ask(request, "POST", "/v1/contracts", { source: text("Lists a colleague's.") })).status).toBe(200);
  await page.reload();
  await expect(editor).toContainText("Lists mine.");
  await page.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByRole("alert")).toContainText("It changed meanwhile");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await expect(editor).toContainText("Lists a colleague's.");
});

test("two versions are compared by meaning and by text, and the way back is open", async ({ page, request }) => {
  await publishDesk(request, "gatee");
  const { draft, fingerprint } = await breakDesk(request, "gatee");
  await ask(request, "POST", `/v1/drafts/${draft}/publish`, { fingerprint });
  await signIn(page, "operator", "/contracts/gatee?tab=versions");
  await page.getByRole("button", { name: "Compare with live" }).click();
  await expect(page).toHaveURL(/from=1.0.0&to=2.0.0/);
  await expect(page.getByText("choices: [open, pending], help").first()).toBeVisible();
  await page.getByRole("button", { name: "What going back would change" }).click();
  await page.getByRole("button", { name: "Go back to 1.0.0" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Go back" }).click();
  await expect(page.getByRole("row", { name: /1\.0\.0 live/ })).toBeVisible();
});

test("the builder says which line is wrong, and submits what is right with its comments", async ({ page, request }) => {
  await signIn(page, "editor", "/builder?pane=yaml");
  const editor = page.getByRole("textbox", { name: "Contract as YAML" });
  const live = page.getByRole("region", { name: "What it becomes" });
  await writeContract(page, desk("gatef").replace("verb: list", "verb: lst"));
  await expect(live.getByRole("button", { name: /^Line 14: unknown verb/ })).toBeVisible();
  await expect(editor.locator(".cm-fault")).toContainText("verb: lst");
  await page.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByRole("alert")).toContainText("/tools/0/verb");
  await page.reload();
  await expect(editor).toContainText("verb: lst");
  await writeContract(page, desk("gatef"));
  await live.getByRole("tab", { name: "Changes" }).click();
  await expect(live.getByText("Live as soon as it is submitted.")).toBeVisible();
  await page.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByRole("link", { name: "gatef@1.0.0" })).toBeVisible();
  await live.getByRole("tab", { name: "YAML" }).click();
  await writeContract(page, desk("gatef", "open, pending"));
  await live.getByRole("tab", { name: "Changes" }).click();
  await expect(live.getByText("Held as a draft until an operator publishes it.")).toBeVisible();
  const { body } = await ask(request, "GET", "/v1/contracts/gatef");
  expect(body.source).toContain("# The desk of one test.");
});

test("a draft and a text of the builder are compared line by line too", async ({ page, request }) => {
  await publishDesk(request, "gateh");
  await breakDesk(request, "gateh");
  await signIn(page, "viewer", "/contracts/gateh?tab=drafts");
  await page.getByText("The compiled document, line by line against 1.0.0").click();
  await expect(page.getByRole("group", { name: "Compiled document" }).locator(".removed").filter({ hasText: "closed" }).first()).toBeVisible();
  await signIn(page, "editor", "/builder?contract=gateh&pane=yaml");
  await writeContract(page, desk("gateh").replace("Support desk", "Help desk"));
  await page.getByRole("tab", { name: "Changes" }).click();
  const lines = page.getByRole("group", { name: "Text that is served, and this one" });
  await expect(lines.locator(".removed")).toHaveText(/title: Support desk/);
  await expect(lines.locator(".added")).toHaveText(/title: Help desk/);
});

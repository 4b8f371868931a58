// The builder's main acts: a form by keyboard alone, fields that move with their comments, problems at their field.
import type { Locator, Page } from "@playwright/test";
import { ask, desk, expect, keyOf, publishDesk, signIn, test, writeContract } from "./gateway";

/** The schema of the form that Weir begins with, without the name of its dialect. */
const CREATE_TICKET =
  '{"type":"object","properties":{"subject":{"type":"string","description":"Short summary of the issue, one line."},' +
  '"priority":{"type":"integer","minimum":1,"maximum":5,"description":"1 is lowest, 5 is highest."},' +
  '"status":{"type":"string","enum":["open","pending","closed"]},' +
  '"notify":{"type":"boolean","description":"Email the requester when the ticket is created."}},' +
  '"required":["subject","priority","status"],"additionalProperties":false}';

/** Goes on with the key Tab until this has the focus. */
async function tabTo(page: Page, target: Locator, key = "Tab") {
  await expect(target).toBeVisible();
  for (let step = 0; step < 60; step += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${key} never leads to ${target}`);
}

const inspector = (page: Page) => page.getByRole("region", { name: "Inspector" });
const fields = (page: Page) => page.getByRole("grid", { name: "Fields" });
const schemaOf = async (page: Page) => {
  const text = await page.getByRole("group", { name: "Schema of the arguments" }).locator(".json-line").allTextContents();
  const { $schema: _, ...schema } = JSON.parse(text.join("\n"));
  return JSON.stringify(schema);
};
const names = (page: Page) => fields(page).locator(".field-name .mono").allTextContents();

test("the form create_ticket is built by keyboard alone", async ({ page, request }) => {
  test.setTimeout(240_000);
  await signIn(page, "operator", "/builder");
  const { keyboard } = page;
  const type = async (label: string, text: string) => {
    await tabTo(page, inspector(page).getByLabel(label, { exact: true }));
    await keyboard.press("Control+a");
    await keyboard.type(text);
  };
  const press = async (target: Locator, key = "Enter") => {
    await tabTo(page, target);
    await keyboard.press(key);
  };
  const addField = async (column: string) => {
    await press(inspector(page).getByRole("button", { name: /^Add (another|a) field$/ }));
    await expect(page.getByRole("menuitem", { name: column, exact: true })).toBeVisible();
    await keyboard.type(column);
    await keyboard.press("Enter");
    await expect(inspector(page).getByLabel("name", { exact: false }).first()).toBeFocused();
  };

  await type("contract required", "seed");
  await tabTo(page, page.getByRole("button", { name: "Add a source" }), "Shift+Tab");
  await keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Add a source" });
  await tabTo(page, dialog.getByLabel("File or path"));
  await keyboard.type("desk.csv");
  await press(dialog.getByLabel("Tools may write to it"), "Space");
  await press(dialog.getByRole("button", { name: "Add the source only" }));
  await expect(inspector(page).getByRole("region", { name: "Columns" })).toContainText("notify");

  await tabTo(page, page.getByRole("button", { name: "Add a tool" }), "Shift+Tab");
  await keyboard.press("Enter");
  await expect(page.getByRole("menuitem", { name: "create", exact: true })).toBeVisible();
  await keyboard.type("create");
  await keyboard.press("Enter");
  await expect(inspector(page).getByLabel("tool required")).toBeFocused();
  await type("tool required", "create_ticket");
  await type("description", "Creates a support ticket and returns it.");

  await addField("subject");
  await press(inspector(page).getByRole("checkbox", { name: /^required/ }), "Space");
  await type("help", "Short summary of the issue, one line.");
  await addField("priority");
  await press(inspector(page).getByRole("checkbox", { name: /^required/ }), "Space");
  await type("help", "1 is lowest, 5 is highest.");
  await type("min", "1");
  await type("max", "5");
  await addField("status");
  await tabTo(page, inspector(page).getByLabel("type", { exact: true }));
  await keyboard.type("dropdown");
  await press(inspector(page).getByRole("checkbox", { name: /^required/ }), "Space");
  await press(inspector(page).getByRole("button", { name: "Add a choice" }));
  for (const choice of ["open", "pending", "closed"]) {
    await keyboard.type(choice);
    if (choice !== "closed") await keyboard.press("Enter");
  }
  await addField("notify");
  await type("help", "Email the requester when the ticket is created.");
  await expect(fields(page).getByRole("row")).toHaveCount(4);
  await expect.poll(() => schemaOf(page).catch(String)).toBe(CREATE_TICKET);

  await tabTo(page, page.getByRole("button", { name: "Add a tool" }), "Shift+Tab");
  await tabTo(page, fields(page).getByRole("row", { name: "notify" }));
  await keyboard.press("Alt+ArrowUp");
  await expect.poll(() => names(page)).toEqual(["subject", "priority", "notify", "status"]);
  await keyboard.press("Control+z");
  await expect.poll(() => names(page)).toEqual(["subject", "priority", "status", "notify"]);
  await expect.poll(() => schemaOf(page).catch(String)).toBe(CREATE_TICKET);
  await press(page.getByRole("button", { name: "Submit" }), "Enter");
  const outcome = page.getByRole("region", { name: "Outcome" });
  await expect(outcome).toContainText("seed@1.0.0 is live. Next: Try it, Connect a client");
  await expect(outcome.getByRole("link", { name: "Try it" })).toHaveAttribute("href", /tool=create_ticket/);
  await expect(page.getByLabel("Contract", { exact: true })).toHaveValue("seed");
  const { body } = await ask(request, "GET", "/v1/tools?q=create_ticket");
  const { $schema: _, ...served } = body.tools[0].tool.inputSchema;
  expect(JSON.stringify(served)).toBe(CREATE_TICKET);
});

const COMMENTED = (name: string) =>
  desk(name)
    .replace("      - { name: subject", "      # What it is about.\n      - { name: subject")
    .replace("max_length: 80, help: \"One line.\" }", "max_length: 80, help: \"One line.\" }   # short");

test("a field that is dragged takes its comment along, and the text is what was written", async ({ page, request }) => {
  expect((await ask(request, "POST", "/v1/contracts", { source: COMMENTED("builda") })).status).toBe(200);
  await signIn(page, "editor", "/builder?contract=builda&at=/tools/1/fields/0&pane=yaml");
  await expect(page.getByRole("textbox", { name: "Contract as YAML" })).toContainText("# What it is about.");
  const from = await fields(page).getByRole("row", { name: "subject" }).getByRole("button", { name: /^Move/ }).boundingBox();
  const to = await fields(page).getByRole("row", { name: "status" }).boundingBox();
  if (!from || !to) throw new Error("the rows are not there");
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + 60, to.y + to.height / 2, { steps: 8 });
  await page.mouse.move(to.x + 60, to.y + to.height - 3, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => names(page)).toEqual(["status", "subject"]);
  await page.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByRole("link", { name: /builda@/ })).toBeVisible();
  const { body } = await ask(request, "GET", "/v1/contracts/builda");
  const lines = (text: string) => text.split("\n").sort();
  expect(lines(body.source)).toEqual(lines(COMMENTED("builda")));
  expect(body.source).toMatch(/# What it is about\.\n {6}- \{ name: subject.*# short\n$/);
});

test("problems are at their field and key, and the text and the parts are one", async ({ page, request }) => {
  await publishDesk(request, "buildb");
  await signIn(page, "editor", "/builder?contract=buildb&at=/tools/1/fields/0");
  await inspector(page).getByLabel("min_length", { exact: true }).fill("90");
  const row = fields(page).getByRole("row", { name: "subject" });
  await expect(row).toContainText("1");
  await expect(inspector(page).getByLabel("min_length", { exact: true }).or(inspector(page).getByLabel("max_length", { exact: true })).and(page.locator("[aria-invalid=true]"))).toHaveCount(1);
  await page.getByRole("tab", { name: /YAML/ }).click();
  const editor = page.getByRole("textbox", { name: "Contract as YAML" });
  await expect(editor).toContainText("min_length: 90");
  await expect(editor.locator(".cm-fault")).toHaveCount(1);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(editor).toContainText("min_length: 1,");
  await expect(inspector(page).getByLabel("min_length", { exact: true })).toHaveValue("1");
  await editor.getByText("One line.").click();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.keyboard.type("- { name: id, type: number }");
  await expect(fields(page).getByRole("row", { name: "id" })).toBeVisible();
  await page.keyboard.press("Control+z");
  await expect(fields(page).getByRole("row", { name: "id" })).toBeHidden();
});

test("work that was not submitted survives a reload, in its place", async ({ page, request }) => {
  await publishDesk(request, "buildc");
  await signIn(page, "editor", "/builder?contract=buildc");
  await page.getByRole("navigation", { name: "Parts of the contract" }).getByRole("button", { name: /buildc_create/ }).click();
  await fields(page).getByRole("row", { name: "subject" }).click();
  await inspector(page).getByLabel("help", { exact: true }).fill("What it is about.");
  await expect(page.getByText("this browser keeps it")).toBeVisible();
  await page.reload();
  await expect(inspector(page).getByLabel("help", { exact: true })).toHaveValue("What it is about.");
  await expect(page).toHaveURL(/at=%2Ftools%2F1%2Ffields%2F0/);
  await page.getByRole("button", { name: "Discard changes" }).click();
  await expect(inspector(page).getByLabel("help", { exact: true })).toHaveValue("One line.");
});

test("the contract of a file names its file, and is not submitted", async ({ page }) => {
  await signIn(page, "operator", "/builder?contract=filed&at=/tools/0/fields/0");
  await expect(page.getByText(/contracts\/filed\.yaml/)).toBeVisible();
  await expect(page.getByRole("button", { name: "Submit" })).toBeHidden();
  await inspector(page).getByLabel("help", { exact: true }).fill("Open or closed.");
  await page.getByRole("tab", { name: "YAML" }).click();
  await expect(page.getByRole("textbox", { name: "Contract as YAML" })).toContainText("# Kept in a file.");
  await expect(page.getByRole("button", { name: "Copy the text" })).toBeVisible();
});

/** An Enter in the moment in which options appear ends the line: the person was typing. */
async function takeOption(page: Page) {
  await page.waitForTimeout(150);
  await page.keyboard.press("Enter");
}

test("the text offers keys and words by keyboard, and explains a key", async ({ page, request }) => {
  await publishDesk(request, "buildery");
  await signIn(page, "editor", "/builder?contract=buildery&pane=yaml");
  const editor = page.getByRole("textbox", { name: "Contract as YAML" });
  await expect(editor).toContainText("contract: buildery");
  await writeContract(page, `${desk("buildery")}  - tool: buildery_more\n    v`);
  await page.keyboard.press("Control+End");
  await page.keyboard.type("e");
  await expect(page.getByRole("option", { name: /^verb/ })).toBeVisible();
  await takeOption(page);
  await page.keyboard.press("Control+Space");
  await expect(page.getByRole("option", { name: "summarize" })).toBeVisible();
  await page.keyboard.type("cou");
  await expect(page.getByRole("option", { name: "summarize" })).toBeHidden();
  await takeOption(page);
  await expect(editor).toContainText("verb: count");
  await page.keyboard.press("Escape");
  await editor.getByText("collections", { exact: true }).first().hover();
  await expect(page.getByText(/^collections: object/)).toBeVisible();
});

test("a dropdown takes the values of its column, and the bar says that the change breaks callers", async ({ page, request }) => {
  await publishDesk(request, "builderv");
  await signIn(page, "operator", "/builder?contract=builderv&at=/tools/0/fields/0");
  await inspector(page).getByRole("button", { name: "Take the values of the column instead" }).click();
  await expect(inspector(page).getByLabel("Choice 1", { exact: true })).toHaveValue("open");
  await expect(inspector(page).getByLabel("Choice 2", { exact: true })).toHaveValue("closed");
  await expect(inspector(page).getByLabel("Choice 3", { exact: true })).toHaveCount(0);
  await expect(inspector(page).getByLabel("match", { exact: true }).getByRole("option", { name: "contains, any case" })).toHaveAttribute("value", "contains-ci");
  await expect(page.locator(".work-bar").getByText("breaking", { exact: true })).toBeVisible();
  await page.setViewportSize({ width: 1280, height: 800 });
  const tabs = page.getByRole("tablist", { name: "What it becomes" });
  expect(await tabs.evaluate((list) => list.scrollWidth - list.clientWidth)).toBeLessThanOrEqual(0);
  const submit = page.getByRole("button", { name: "Submit" });
  await submit.press("Enter");
  await expect(page.getByRole("region", { name: "Outcome" })).toContainText("It breaks callers, so it was not published. You are an operator: look at it and publish it.");
  await expect(submit).toBeFocused();
});

test("a file that is dropped on an empty builder becomes a draft", async ({ page }) => {
  await signIn(page, "editor", "/builder");
  await expect(page.getByText(/\d problem/)).toHaveCount(0);
  const box = page.getByRole("region", { name: "Drop a CSV or spreadsheet here, or choose one" });
  const dropped = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["lane,length,opened\nNorth,12,01/02/2026\nSouth,8,03/04/2026\n"], "lanes.csv", { type: "text/csv" }));
    return data;
  });
  await box.dispatchEvent("drop", { dataTransfer: dropped });
  await expect(page.getByRole("navigation", { name: "Parts of the contract" })).toContainText("list_lanes");
  await expect(box).toHaveCount(0);
  const guessed = page.getByRole("status").filter({ hasText: "The draft leaves out or guesses:" });
  await expect(guessed).toContainText("dates such as 31/12/2026 (day, month, year)");
  await expect(guessed.locator("code").first()).toHaveText('{ type: date, date: "%d/%m/%Y" }');
});

test("on a narrow page the form of a chosen part comes into sight, and leads back", async ({ page, request }) => {
  await publishDesk(request, "buildern");
  await page.setViewportSize({ width: 400, height: 800 });
  await page.goto(`/#token=${keyOf("editor")}`);
  await expect(page.getByRole("button", { name: "Menu" })).toBeVisible();
  await page.goto("/#/builder?contract=buildern");
  const parts = page.getByRole("navigation", { name: "Parts of the contract" });
  await parts.getByRole("button", { name: /buildern_create/ }).click();
  await expect(inspector(page).getByRole("heading", { name: /Tool/ })).toBeInViewport();
  await inspector(page).getByRole("button", { name: "Back to the parts" }).click();
  await expect(parts.getByRole("heading", { name: "Sources" })).toBeInViewport();
});

test("a source shows its first rows when it is asked to, without values that are named like secrets", async ({ page }) => {
  const source = desk("buildrow").replace("connection: data, path: tickets.csv", "connection: drops, path: people.csv").replace("columns: [id, subject, status]", "columns: [name, team]").replace("key: [id]\n", "key: [name]\n");
  await signIn(page, "editor", "/builder?pane=yaml");
  await writeContract(page, source);
  await page.getByRole("navigation", { name: "Parts of the contract" }).getByRole("button", { name: /tickets/ }).click();
  const rows = inspector(page).getByRole("region", { name: "Sample rows" });
  await rows.getByRole("button", { name: "Show its first rows" }).click();
  await expect(rows).toContainText("Ada");
  await expect(rows).not.toContainText("hunter2");
  // What was written here is no work of the next test.
  await page.getByRole("button", { name: "Discard changes" }).click();
});

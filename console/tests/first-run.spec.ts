// The first minutes: an empty folder, a link, a file, a tool that is called, and what a client is given.
import { writeFileSync } from "node:fs";
import { expect, test } from "./gateway";

/** A gateway that was started in an empty folder, and its first operator. */
const GATEWAY = process.env.WEIR_CONSOLE_EMPTY ?? "";
const OPERATOR = { Authorization: `Bearer ${process.env.WEIR_CONSOLE_EMPTY_KEY ?? ""}` };
/** What is there for a client in the end. */
const GIVEN = process.env.WEIR_CONSOLE_GIVEN ?? "";

test.use({ baseURL: GATEWAY });

test("an empty folder becomes a tool, and a client is given what connects it", async ({ page, request }) => {
  test.setTimeout(300_000);
  // As the gateway prints one for a person who starts it at a terminal.
  const link = await request.post("/v1/session/link", { headers: OPERATOR });
  await page.goto((await link.json()).path);
  await page.getByRole("link", { name: "Make a tool of a table or a file" }).click();
  await page.getByRole("button", { name: "Add a source" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Add a source" });
  const buffer = Buffer.from("room,floor,seats\nAtlas,2,12\nBorealis,1,8\nCygnus,2,30\n");
  await dialog.locator("input[type=file]").setInputFiles({ name: "rooms.csv", mimeType: "text/csv", buffer });
  await dialog.getByRole("button", { name: "Draft the tools" }).click();
  await page.getByRole("button", { name: "Submit" }).click();
  const outcome = page.getByRole("region", { name: "Outcome" });
  await expect(outcome).toContainText("published");

  await outcome.getByRole("link", { name: "Try it" }).click();
  await expect(page.getByLabel("Tool", { exact: true })).not.toHaveValue("");
  // A tool that needs nothing comes first: it shows something at once.
  await expect(page.getByLabel("Tool", { exact: true })).toHaveValue("list_rooms");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Borealis");

  await page.goto("/#/keys?make=yes");
  const making = page.getByRole("dialog", { name: "Make a key" });
  await expect(making.getByText("This is the first key. From now on every client needs one, those on this machine too.")).toBeVisible();
  await making.getByLabel("Agent").fill("first");
  await making.getByLabel("rooms").check();
  await making.getByRole("button", { name: "Make the key" }).click();
  await making.getByLabel("Client").selectOption("Claude Desktop");
  await expect(making.getByText("claude_desktop_config.json")).toBeVisible();
  await expect(making.getByText('"mcp-remote"')).toBeVisible();
  await making.getByLabel("Client").selectOption("Cursor");
  await expect(making.getByText(/\.cursor\/mcp\.json of your project/)).toBeVisible();
  const connection = making.getByText('"mcpServers"');
  await expect(connection).toBeVisible();
  const settings = JSON.parse((await connection.textContent()) ?? "");

  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: GATEWAY });
  await page.goto(`/#/try?tool=list_rooms&agent=first&arguments=${encodeURIComponent('{"min_seats":10}')}`);
  const calls: Record<string, string> = {};
  for (const name of ["curl", "weir call", "Python", "TypeScript"]) {
    await page.getByRole("group", { name: "Copy this call" }).getByRole("button", { name, exact: true }).click();
    calls[name] = await page.evaluate(() => navigator.clipboard.readText());
  }
  writeFileSync(GIVEN, JSON.stringify({ settings, calls }));
});

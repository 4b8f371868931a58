// What is behind the gateway: connections with their files, and other servers.
import { expect, signIn, test } from "./gateway";

test("a connection is checked, browsed, and becomes a contract", async ({ page }) => {
  await signIn(page, "editor", "/plugins?tab=connections");
  await page.getByRole("table", { name: "Connections" }).getByRole("button", { name: "drops" }).click();
  const drawer = page.getByRole("dialog", { name: "drops" });
  await drawer.getByRole("button", { name: "Check" }).click();
  await expect(drawer.getByRole("status")).toContainText(/answers after [0-9.]+ ms/);
  await drawer.getByLabel("Contains").fill("eopl");
  await drawer.getByRole("button", { name: "people.csv" }).click();
  const rows = drawer.getByRole("group", { name: "First rows" });
  await expect(rows).toContainText("Ada");
  await expect(rows).not.toContainText("hunter2");
  await expect(drawer).toContainText("names are those of secrets: api_token");
  await expect(page).toHaveURL(/connection=drops&q=eopl&source=people\.csv/);
  await page.reload();
  await expect(rows).toContainText("Ada");
  await drawer.getByRole("link", { name: "Draft a contract" }).click();
  await expect(page.getByRole("heading", { name: "Builder", level: 1 })).toBeVisible();
  await expect(page.getByText("The draft leaves out or guesses:")).toBeVisible();
  await page.getByRole("tab", { name: /YAML/ }).click();
  await expect(page.getByRole("textbox", { name: "Contract as YAML" })).toContainText("people.csv");
  await expect(page).not.toHaveURL(/source=/);
});

test("a draft over a source takes the place of other work when someone says so", async ({ page }) => {
  await signIn(page, "editor", "/builder");
  await page.evaluate(() => localStorage.setItem("weir.work.", JSON.stringify({ text: "contract: mine\n", base: { text: "", etag: "" } })));
  await page.goto("/#/plugins?tab=connections&connection=drops&source=people.csv");
  await page.getByRole("link", { name: "Draft a contract" }).click();
  await page.getByRole("button", { name: "Keep what is here" }).click();
  await page.getByRole("tab", { name: /YAML/ }).click();
  const text = page.getByRole("textbox", { name: "Contract as YAML" });
  await expect(text).toContainText("contract: mine");
  await page.goto("/#/builder?connection=drops&source=people.csv&pane=yaml");
  await page.getByRole("button", { name: "Take the draft" }).click();
  await expect(text).toContainText("people.csv");
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(text).toContainText("contract: mine");
});

test("a file is put into a connection that takes files, and its rows are there", async ({ page }) => {
  await signIn(page, "editor", "/plugins?tab=connections&connection=data");
  await expect(page.getByRole("button", { name: "tickets.csv" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Put in a file" })).toHaveCount(0);
  await page.goto("/#/plugins?tab=connections&connection=drops");
  const drawer = page.getByRole("dialog", { name: "drops" });
  const file = (text: string) => ({ name: "new rooms.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await drawer.locator("input[type=file]").setInputFiles(file("room,seats\nAtlas,12\n"));
  await expect(drawer.getByRole("status").filter({ hasText: "new rooms.csv is in it." })).toBeVisible();
  const rows = drawer.getByRole("group", { name: "First rows" });
  await expect(rows).toContainText("Atlas");
  await drawer.locator("input[type=file]").setInputFiles(file("room,seats\nBorealis,8\n"));
  await expect(rows).toContainText("Borealis");
  await expect(rows).not.toContainText("Atlas");
});

test("a viewer sees the connections, and which role may look behind them", async ({ page }) => {
  await signIn(page, "viewer", "/plugins?tab=connections&connection=drops");
  const drawer = page.getByRole("dialog", { name: "drops" });
  await expect(drawer.getByRole("button", { name: "Check" })).toBeDisabled();
  await expect(drawer.getByText("an editor may do this; your role is viewer").last()).toBeVisible();
});

// A version that is kept: from the gate, its last day, the agents that are pinned to it, and its end.
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { ask, breakDesk, desk, expect, publishDesk, signIn, test } from "./gateway";

async function expectAccessible(page: Page, isDialog = false) {
  await expect(page.getByRole("dialog")).toHaveCount(isDialog ? 1 : 0);
  // What the library reads out when a button was pressed names one that is gone by then.
  const { violations } = await new AxeBuilder({ page }).exclude("[data-live-announcer]").analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id} ${nodes[0]?.target}`)).toEqual([]);
}

test("an operator keeps the version that a change breaks, moves its last day and ends it", async ({ page, request }) => {
  await publishDesk(request, "keepa");
  await breakDesk(request, "keepa");
  await signIn(page, "operator", "/contracts/keepa?tab=drafts");
  await page.getByRole("button", { name: "Approve the breaking change" }).click();
  const dialog = page.getByRole("dialog");
  const publish = dialog.getByRole("button", { name: "Publish" });
  await dialog.getByRole("textbox").fill("keepa");
  await dialog.getByLabel("Keep 1.0.0 for agents that are pinned to it").check();
  await expect(dialog.getByText("No shim that the change suggests converts every call")).toContainText("/properties/status");
  await dialog.getByLabel("Shim as JSON").fill("{");
  await expect(dialog.getByText("is not JSON")).toBeVisible();
  await expect(publish).toBeDisabled();
  await dialog.getByLabel("Shim as JSON").fill("");
  await dialog.getByLabel("Last day").fill("2099-12-31");
  await expectAccessible(page, true);
  await publish.click();
  await expect(page.getByRole("status", { name: "What became of it" })).toContainText("Agents are served 2.0.0.");

  await page.goto("/#/keys");
  await page.getByRole("button", { name: "Pin an agent" }).click();
  await dialog.getByLabel("Agent").fill("caller");
  await dialog.getByLabel("Version").selectOption("keepa@1");
  await dialog.getByRole("button", { name: "Pin it" }).click();
  const pins = page.getByRole("table", { name: "Pins" });
  await expect(pins.getByRole("row", { name: /caller.*keepa@1/ })).toBeVisible();
  await expectAccessible(page);

  await page.goto("/#/contracts/keepa?tab=versions");
  const kept = page.getByRole("table", { name: "Kept versions" }).getByRole("row", { name: /1\.0\.0/ });
  await expect(kept).toContainText("its own binding");
  await expect(kept).toContainText("caller");
  await page.getByRole("button", { name: "Change the last day of 1.0.0" }).click();
  await expect(dialog.getByLabel("Last day")).toHaveValue("2099-12-31");
  await dialog.getByLabel("Last day").fill("");
  await dialog.getByRole("button", { name: "Change it" }).click();
  await expect(kept).toContainText("when an operator ends it");
  await expectAccessible(page);
  // The browser's clock is a day ahead, and it is the gateway's that counts.
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await page.getByRole("button", { name: "End 1.0.0 now" }).click();
  await dialog.getByRole("button", { name: "End it" }).click();
  await expect(kept).toContainText("ended");
  const { body } = await ask(request, "GET", "/v1/versions");
  const ended = body.kept.find(({ contract }: { contract: string }) => contract === "keepa");
  expect(ended.has_ended).toBe(true);

  await page.goto("/#/keys");
  await page.getByRole("button", { name: "Unpin caller from keepa" }).click();
  await expect(page.getByRole("button", { name: "Unpin caller from keepa" })).toHaveCount(0);
});

test("a name that the change shows is converted by a suggested shim", async ({ page, request }) => {
  const source = (tool: string) => desk("keepb").replace("tool: keepb_list", `tool: ${tool}`);
  expect((await ask(request, "POST", "/v1/contracts", { source: source("keepb_list") })).status).toBe(200);
  expect((await ask(request, "POST", "/v1/contracts", { source: source("keepb_lists") })).status).toBe(202);
  await signIn(page, "operator", "/contracts/keepb?tab=drafts");
  await page.getByRole("button", { name: "Approve the breaking change" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("keepb");
  await dialog.getByLabel("Keep 1.0.0 for agents that are pinned to it").check();
  await expect(dialog.getByText("The change suggests a shim, which converts every call")).toBeVisible();
  await dialog.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByRole("status", { name: "What became of it" })).toContainText("Agents are served 2.0.0.");
  const { body } = await ask(request, "GET", "/v1/versions");
  const kept = body.kept.find(({ contract }: { contract: string }) => contract === "keepb");
  expect(kept.shim.tools.keepb_list.name).toBe("keepb_lists");
});

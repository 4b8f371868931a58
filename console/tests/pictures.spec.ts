// The pictures of README and docs, which are small enough to be kept: the overview, the builder, the gate and a trial.
import type { Page } from "@playwright/test";
import { breakDesk, ask, expect, publishDesk, signIn, test } from "./gateway";

const SIZE_MAX = 150 * 1024;

test.use({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce" } as object);

async function take(page: Page, name: string) {
  await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
  const folder = process.env.WEIR_CONSOLE_PICTURES;
  const picture = await page.screenshot({ ...(folder && { path: `${folder}/console-${name}.png` }) });
  expect(picture.length, `the picture of the ${name}`).toBeLessThanOrEqual(SIZE_MAX);
}

test("the pictures of the documentation are small", async ({ page, request }) => {
  await publishDesk(request, "support");
  await breakDesk(request, "support");
  for (const status of ["open", "closed", "opn", "open"]) {
    await ask(request, "POST", "/v1/calls", { tool: "support_list", agent: "caller", arguments: { status } });
  }
  await signIn(page, "operator", "/");
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  await expect(page.getByRole("link", { name: /support/ }).first()).toBeVisible();
  await take(page, "overview");
  await page.goto("/#/builder?contract=support&at=/tools/1/fields/1");
  await expect(page.getByText('"enum"').first()).toBeVisible();
  await take(page, "builder");
  await page.goto("/#/contracts/support?tab=drafts");
  await expect(page.getByText("Whose calls").or(page.getByText("not_in_enum")).or(page.getByRole("heading", { name: "What changes" })).first()).toBeVisible();
  await take(page, "gate");
  const wrong = encodeURIComponent(JSON.stringify({ subject: "Printer is out of paper", status: "opn" }));
  await page.goto(`/#/try?tool=support_create&agent=caller&arguments=${wrong}`);
  await page.getByRole("button", { name: "Check" }).click();
  await expect(page.getByLabel("status")).toHaveAttribute("aria-invalid", "true");
  await take(page, "try");
});

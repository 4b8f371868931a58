// Signing in by an issuer, whose pages are at another address.
import { expect, test } from "@playwright/test";

const ISSUER = process.env.WEIR_CONSOLE_ISSUER ?? "";

test("a person signs in by the issuer, gets the role of the claim, and comes back to the page", async ({ page, request }) => {
  let answer = "";
  page.on("request", (asked) => {
    if (asked.url().endsWith("/v1/session/oidc/answer")) answer = asked.postData() ?? "";
  });
  await page.goto("/#/audit?text=abc");
  await page.getByRole("button", { name: `Sign in with ${new URL(ISSUER).host}` }).click();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await expect(page.getByText("oidc:ann", { exact: true })).toBeVisible();
  await expect(page.getByText("editor", { exact: true }).first()).toBeVisible();
  await expect(page).toHaveURL(/\/#\/audit\?text=abc$/);
  expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual(["weir.session"]);

  const again = await request.post("/v1/session/oidc/answer", { data: JSON.parse(answer) });
  expect(again.status()).toBe(403);
  expect((await again.json()).detail).toContain("was used");
});

test("an answer is of no use in another tab", async ({ page, context }) => {
  let query = "";
  await page.route("**/v1/session/oidc/answer", async (route) => {
    query = JSON.parse(route.request().postData() ?? "{}").query;
    await route.abort();
  });
  await page.goto("/");
  await page.getByRole("button", { name: "Sign in with" }).click();
  await expect.poll(() => query).toContain("code=");
  const other = await context.newPage();
  await other.goto(`/?${query}`);
  await expect(other.getByText("began in another tab")).toBeVisible();
  await expect(other.getByLabel("Admin key")).toBeVisible();
  expect(other.url()).not.toContain("code=");
});

test("a page elsewhere begins no sign-in", async ({ request }) => {
  const begin = (headers: Record<string, string>) => request.post("/v1/session/oidc", { data: { tab: "0".repeat(32) }, headers });
  expect((await begin({})).status()).toBe(400);
  expect((await begin({ Origin: "http://127.0.0.1:1" })).status()).toBe(400);
  expect((await begin({ Origin: "https://elsewhere.example" })).status()).toBe(403);
});

// Every page in both colours, wide and narrow: nothing that axe calls serious, nothing wider than the screen.
import AxeBuilder from "@axe-core/playwright";
import { ask, breakDesk, expect, publishDesk, signIn, test } from "./gateway";

const PAGES: [string, string][] = [
  ["overview", "/"],
  ["contracts", "/contracts?q=pagesa"],
  ["contract", "/contracts/pagesa"],
  ["gate", "/contracts/pagesa?tab=drafts"],
  ["versions", "/contracts/pagesa?tab=versions"],
  ["sources", "/contracts/pagesa?tab=drift"],
  ["callers", "/contracts/pagesa?tab=callers"],
  ["drafts", "/drafts"],
  ["tools", "/tools?contract=pagesa"],
  ["tool", "/tools?contract=pagesa&tool=pagesa_create"],
  ["builder", "/builder?contract=pagesa&at=/tools/1/fields/0"],
  ["builder-text", "/builder?contract=pagesa&at=/tools/1&pane=yaml"],
  ["builder-people", "/builder?contract=pagesa&at=/collections/tickets&pane=people"],
  ["builder-new", "/builder"],
  ["try", "/try?tool=pagesa_create"],
  ["keys", "/keys"],
  ["make-key", "/keys?make=yes"],
  ["approvals", "/approvals"],
  ["audit", "/audit?text=pagesa"],
  ["verify", "/audit?text=pagesa&verify=yes"],
  ["servers", "/servers"],
  ["server", "/servers?server=planes"],
  ["add-server", "/servers?add=yes"],
  ["plugins", "/plugins"],
  ["connections", "/plugins?tab=connections"],
  ["connection", "/plugins?tab=connections&connection=drops&source=people.csv"],
  ["settings", "/settings"],
  ["policies", "/settings?tab=policies"],
  ["admins", "/settings?tab=admins"],
  ["sessions", "/settings?tab=sessions"],
  ["nodes", "/settings?tab=nodes"],
  ["unknown", "/none"],
];

const LOOKS = [
  { width: 1440, colorScheme: "light" },
  { width: 1440, colorScheme: "dark" },
  { width: 400, colorScheme: "dark" },
  { width: 400, colorScheme: "light" },
] as const;

// The pages are shared out between the workers.
for (const part of [0, 1, 2, 3, 4, 5]) {
  test(`pages are accessible and fit, part ${part + 1}`, async ({ page, request }) => {
    test.setTimeout(300_000);
    if (part === 0) {
      await publishDesk(request, "pagesa");
      await breakDesk(request, "pagesa");
    }
    await expect.poll(async () => (await ask(request, "GET", "/v1/contracts/pagesa")).status).toBe(200);
    await signIn(page, "operator");
    for (const [name, address] of PAGES.filter((_, index) => index % 6 === part)) {
      await page.goto(`/#${address}`);
      await expect(page.getByRole("heading", { level: 1 }).or(page.getByRole("dialog")).first()).toBeVisible();
      await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
      for (const { width, colorScheme } of LOOKS) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        const look = `${name}-${width}-${colorScheme}`;
        const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(excess, `${look} is wider than the screen`).toBeLessThanOrEqual(0);
        const { violations } = await new AxeBuilder({ page }).analyze();
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        expect(serious.map(({ id, nodes }) => `${look}: ${id} ${nodes[0]?.target}`)).toEqual([]);
        const folder = process.env.WEIR_CONSOLE_SHOTS;
        if (folder) await page.screenshot({ path: `${folder}/${look}.png`, fullPage: true });
      }
    }
  });
}

test("the page of signing in is accessible and fits", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByLabel("Admin key")).toBeVisible();
  for (const { width, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(serious.map(({ id, nodes }) => `${id} ${nodes[0]?.target}`)).toEqual([]);
    const folder = process.env.WEIR_CONSOLE_SHOTS;
    if (folder) await page.screenshot({ path: `${folder}/sign-in-${width}-${colorScheme}.png`, fullPage: true });
  }
});

test("the first load is small", async ({ page, request }) => {
  const html = await (await request.get("/")).text();
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  let bytes = 0;
  for (const path of files) {
    const response = await request.get(path, { headers: { "Accept-Encoding": "br" } });
    expect(response.headers()["content-encoding"]).toBe("br");
    bytes += Number(response.headers()["content-length"]);
  }
  expect(bytes).toBeLessThanOrEqual(200 * 1024);
  await signIn(page, "viewer");
});

// Tools: what each is called and costs, an example of a call, and the texts by which a call is made elsewhere.
import { ask, expect, publishDesk, signIn, test } from "./gateway";

test("a tool says how often it is called and how fast it is, and has an example that a trial begins with", async ({ page, request }) => {
  await publishDesk(request, "toolsa");
  for (let call = 0; call < 3; call += 1) await ask(request, "POST", "/v1/calls", { tool: "toolsa_list", agent: "caller", arguments: {} });
  await signIn(page, "operator", "/tools?contract=toolsa");
  const row = page.getByRole("table", { name: "Tools" }).getByRole("row", { name: /toolsa_list/ });
  await expect(row.locator("[data-label='24 hours']")).toHaveText("3");
  await expect(row.locator("[data-label='95th percentile']")).toHaveText(/(µs|ms|s)$/);
  await page.getByRole("button", { name: "toolsa_create" }).click();
  const drawer = page.getByRole("dialog", { name: "toolsa_create" });
  await expect(drawer.getByRole("group", { name: "Arguments of a sample call" })).toContainText('"status": "open"');
  await drawer.getByRole("link", { name: "Try it" }).click();
  await expect(page.getByLabel("subject")).toHaveValue("text");
  await page.getByRole("button", { name: "Check" }).click();
  await expect(page.getByText("valid", { exact: true })).toBeVisible();
});

test("the tools of one agent are those that its key allows", async ({ page, request }) => {
  await publishDesk(request, "toolsb");
  const key = { agent: "narrow", access: { contracts: ["toolsb"], tools: [] } };
  expect((await ask(request, "POST", "/v1/keys", key)).status).toBe(201);
  await signIn(page, "viewer", "/keys?q=narrow");
  await page.getByRole("link", { name: "What narrow sees" }).click();
  const tools = page.getByRole("table", { name: "Tools" });
  await expect(tools.getByRole("row")).toHaveCount(3);
  await expect(page.getByLabel("As the agent")).toHaveValue("narrow");
});

test("an example fills an empty form, and a result is shown as a client gets it", async ({ page, request }) => {
  await publishDesk(request, "toolsc");
  await signIn(page, "operator", "/try?tool=toolsc_create&agent=caller");
  await page.getByRole("button", { name: "Fill in an example" }).click();
  await expect(page.getByLabel("subject")).toHaveValue("text");
  await expect(page.getByRole("button", { name: "Fill in an example" })).toHaveCount(0);
  await page.getByRole("button", { name: "Call: it writes to toolsc" }).click();
  await page.getByRole("button", { name: "wire", exact: true }).click();
  const wire = page.getByRole("group", { name: "The result as a client gets it" });
  await expect(wire).toContainText('"structuredContent"');
  await expect(wire).toContainText('"dev.weir/receipt"');
  await expect(page).toHaveURL(/view=wire/);
});

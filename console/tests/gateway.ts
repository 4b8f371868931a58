// What the tests share: signing in, and a contract of their own at the gateway.
import { expect, test as base, type APIRequestContext, type Page } from "@playwright/test";

export type Role = "approver" | "viewer" | "editor" | "operator";

const KEYS: Record<Role, string> = {
  approver: process.env.WEIR_CONSOLE_APPROVER ?? "",
  viewer: process.env.WEIR_CONSOLE_VIEWER ?? "",
  editor: process.env.WEIR_CONSOLE_EDITOR ?? "",
  operator: process.env.WEIR_CONSOLE_OPERATOR ?? "",
};

/** Fails a test whose page asks another origin, breaks the content security policy, or throws. */
export const test = base.extend<{ guarded: void }>({
  guarded: [
    async ({ page, baseURL }, use) => {
      const faults: string[] = [];
      page.on("request", (request) => {
        if (!request.url().startsWith(baseURL ?? "")) faults.push(`asked ${request.url()}`);
      });
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => {
        if (message.text().includes("Content Security Policy")) faults.push(message.text());
      });
      await use();
      expect(faults).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

export const keyOf = (role: Role) => KEYS[role];

export async function signIn(page: Page, role: Role, address = "/") {
  await page.goto(`/#token=${KEYS[role]}`);
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await page.goto(`/#${address}`);
}

export async function ask(request: APIRequestContext, method: string, path: string, data?: unknown) {
  const response = await request.fetch(path, { method, data, headers: { Authorization: `Bearer ${KEYS.operator}` } });
  const text = await response.text();
  return { status: response.status(), body: text ? JSON.parse(text) : null };
}

/** A support desk, under a name of its own. */
export function desk(name: string, choices = "open, pending, closed"): string {
  return `# The desk of one test.
contract: ${name}
title: Support desk
collections:
  tickets:
    adapter: sheet
    settings: { connection: data, path: tickets.csv }
    columns: [id, subject, status]
    key: [id]
    write: true
tools:
  - tool: ${name}_list
    description: Lists tickets by status.
    verb: list
    collection: tickets
    fields:
      - { name: status, type: dropdown, choices: [${choices}], help: "The state of the ticket." }
  - tool: ${name}_create
    description: Creates a ticket.
    verb: create
    collection: tickets
    fields:
      - { name: subject, type: text, required: true, min_length: 1, max_length: 80, help: "One line." }
      - { name: status, type: dropdown, required: true, choices: [${choices}], help: "The state of the ticket." }
`;
}

/** Replaces the text of the builder's editor. */
export async function writeContract(page: Page, text: string) {
  const editor = page.getByRole("textbox", { name: "Contract as YAML" });
  await editor.click();
  await page.keyboard.press("Control+a");
  await editor.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

export async function publishDesk(request: APIRequestContext, name: string) {
  const { status, body } = await ask(request, "POST", "/v1/contracts", { source: desk(name) });
  expect(status, JSON.stringify(body)).toBe(200);
}

/** Submits the desk without the status `closed`, which breaks callers, and returns the draft. */
export async function breakDesk(request: APIRequestContext, name: string): Promise<{ draft: string; fingerprint: string }> {
  const { status, body } = await ask(request, "POST", "/v1/contracts", { source: desk(name, "open, pending") });
  expect(status, JSON.stringify(body)).toBe(202);
  return body;
}

// Consoles in Chromium: `node consoles.mjs PACKAGES CHROMIUM URL TOKEN OTHER-URL OTHER-TOKEN`, with the packages of the
// console's own tests.
//
// Prints a line of JSON for each line of standard input: `interactive` opens the console anew, with a processor that is
// throttled four times, and says after how many milliseconds it can be used and how many bytes came; `open N` has N consoles
// open at the overview, and `beside N` those of the other gateway; `close` has none.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [packages, executablePath, url, token, otherUrl, otherToken] = process.argv.slice(2);
const { chromium } = createRequire(`${packages}/package.json`)("@playwright/test");
const browser = await chromium.launch({ executablePath });
let open = [];

async function begin(page, url, token) {
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Opens consoles, and waits until each follows the events of its gateway. */
async function openConsoles(count, url, token) {
  for (let number = 0; number < Number(count); number += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const follows = page.waitForResponse((response) => response.url().includes("/v1/events"));
    await begin(page, url, token);
    await follows;
    open.push(context);
  }
  return { open: open.length };
}

/** The time from the navigation until the pages are listed and the page has answered a click. */
async function interactive() {
  const context = await browser.newContext();
  const page = await context.newPage();
  await begin(page, url, token);
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.addInitScript(() => {
    const look = () => {
      const link = document.querySelector('nav[aria-label="Pages"] a[href$="/tools"]');
      if (!link) return requestAnimationFrame(look);
      link.click();
      const moved = () => {
        if (!location.hash.includes("tools")) return requestAnimationFrame(moved);
        window.usableAfter = performance.now();
      };
      moved();
    };
    document.addEventListener("DOMContentLoaded", look);
  });
  await page.reload();
  const ms = await page.waitForFunction(() => window.usableAfter).then((found) => found.jsonValue());
  await context.close();
  return { ms, bytes };
}

const commands = {
  interactive,
  open: (count) => openConsoles(count, url, token),
  beside: (count) => openConsoles(count, otherUrl, otherToken),
  close: async () => {
    for (const context of open) await context.close();
    open = [];
    return { open: 0 };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...words] = line.split(" ");
  const answer = await commands[name](...words);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();

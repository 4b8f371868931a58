// Fills in the forms of a gateway as a person does, in headless Chromium. Arguments: the address of `/forms/`, a folder
// for screenshots. It prints what was seen, as JSON.
import axe from 'axe-core';
import { chromium } from 'playwright-core';

const [base, folder, password] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const httpCredentials = password ? { username: 'anyone', password } : undefined;
const page = await browser.newPage({ httpCredentials, viewport: { width: 900, height: 1600 } });
const seen = { violations: [], inaccessible: [] };
page.on('console', (message) => message.type() === 'error' && !message.text().startsWith('Failed to load resource') && seen.violations.push(message.text()));
page.on('pageerror', (error) => seen.violations.push(String(error)));
// Not of the full page: that resizes the window, and Chromium then scrolls under the next click.
const shot = (name) => page.screenshot({ path: `${folder}/${name}.png` });
// What keeps people with a screen reader or a keyboard out of the page in its current state, by the rules of axe-core. It
// runs in an isolated world, to which the page's policy does not apply.
const accessible = async (name) => {
  await page.evaluate(axe.source);
  // Announcements of the parts appear only for a moment, in no fixed order.
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run({ exclude: [['[data-live-announcer]']] }));
  if (!passes.length) throw new Error(`axe-core has checked nothing of ${name}`);
  const summarize = ({ id, impact, nodes }) => ({ page: name, id, impact, nodes: nodes.map((node) => node.html) });
  seen.inaccessible.push(...violations.map(summarize));
};
const errors = () => page.locator('.fault:not(:empty)').allTextContents();
const submit = async () => {
  await page.locator('button[type=submit]').click();
  await page.locator('#answer:visible, #problem:visible').first().waitFor();
};

await page.goto(`${base}airports/`);
seen.tools = await page.locator('.tools a').allTextContents();
await accessible('index');
await shot('index');

await page.getByRole('link', { name: 'Look up an airport' }).click();
await submit();
seen.missing = await errors();
await accessible('a form with an error');
seen.focused = await page.evaluate(() => document.activeElement.id);
await page.getByLabel('iata').fill('osl');
await submit();
seen.pattern = (await errors()).length;
// Only the gateway validates, with its own messages.
seen.refused = await errors();
await page.getByLabel('iata').fill('XXX');
await submit();
seen.notFound = await page.locator('#problem').textContent();
await page.getByLabel('iata').fill('OSL');
await submit();
await page.locator('#answer:visible').waitFor();
seen.found = await page.locator('#result').textContent();
await accessible('a record');
await shot('found');

await page.goto(`${base}airports/list_airports`);
await page.getByLabel('country').selectOption('NO');
await page.getByLabel('limit').fill('2');
await submit();
seen.rows = await page.locator('#result tbody tr').count();
await page.getByRole('button', { name: 'Next page' }).click();
await page.locator('#result tbody tr').first().getByText('TRD').waitFor();
await accessible('a table');
await shot('list');
// Even in a narrow window, no word of a cell is broken, and the table scrolls, not the page.
await page.setViewportSize({ width: 360, height: 1600 });
seen.broken = await page.evaluate(() => {
  const broken = [];
  for (const cell of document.querySelectorAll('#result th, #result td')) {
    for (const found of cell.textContent.matchAll(/\S+/g)) {
      const word = document.createRange();
      word.setStart(cell.firstChild, found.index);
      word.setEnd(cell.firstChild, found.index + found[0].length);
      if (new Set([...word.getClientRects()].map((place) => place.top)).size > 1) broken.push(found[0]);
    }
  }
  return broken;
});
seen.wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
await page.setViewportSize({ width: 900, height: 1600 });

await page.goto(`${base}orders/create_order`);
await page.getByLabel('id').fill('7');
await page.getByLabel('due').fill('2026-12-24');
await page.getByLabel('urgent').selectOption({ label: 'Yes' });
await page.getByRole('group', { name: 'address' }).getByLabel('street').fill('Weir Lane 1');
const lines = page.getByRole('group', { name: 'lines' });
await lines.getByRole('button', { name: 'Add' }).click();
await lines.getByRole('button', { name: 'Add' }).click();
await lines.getByLabel('part').nth(0).fill('gate');
await lines.getByLabel('part').nth(1).fill('gauge');
await lines.getByLabel('count').nth(1).fill('0');
await submit();
seen.nested = await errors();
await accessible('lists of records with errors');
await shot('nested-refused');
await lines.getByRole('button', { name: 'Remove' }).nth(0).click();
await lines.getByLabel('count').fill('3');
await submit();
seen.created = await page.locator('#result').textContent();
await shot('nested');
await accessible('what was created');
await page.goto(`${base.replace('/forms/', '/rest/')}airports/`);
await accessible('the reference');
await browser.close();
console.log(JSON.stringify(seen));

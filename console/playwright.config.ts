import { defineConfig } from "@playwright/test";

// The gateway of a run, which the suite `console` of the tests starts.
export default defineConfig({
  testDir: "tests",
  workers: 2,
  fullyParallel: true,
  retries: 0,
  // A shared machine may stop for seconds, and what is there at once is not waited for.
  timeout: 180_000,
  expect: { timeout: 20_000 },
  reporter: "line",
  outputDir: process.env.WEIR_CONSOLE_OUTPUT ?? "test-results",
  use: {
    baseURL: process.env.WEIR_CONSOLE_URL,
    viewport: { width: 1440, height: 900 },
    trace: "off",
    launchOptions: { executablePath: process.env.WEIR_CHROMIUM ?? "/usr/bin/chromium" },
  },
});

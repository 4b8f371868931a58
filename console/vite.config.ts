import { brotliCompressSync, constants } from "node:zlib";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// The gateway serves these files as they are and compresses nothing.
// `inside` are the folders with files below the folder of the build.
export function compressed(folder = "dist", inside = ["assets"]): Plugin {
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  return {
    name: "brotli",
    apply: "build",
    // The folder stays, since cargo watches it.
    buildStart() {
      if (inside.length === 0) return;
      for (const name of [...inside, "index.html", "index.html.br"]) rmSync(join(folder, name), { recursive: true, force: true });
    },
    closeBundle() {
      for (const place of [folder, ...inside.map((name) => join(folder, name))]) {
        for (const entry of readdirSync(place, { withFileTypes: true })) {
          if (!entry.isFile() || entry.name.endsWith(".br") || entry.name.startsWith(".")) continue;
          const path = join(place, entry.name);
          writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path), { params: quality }));
        }
      }
    },
  };
}

const gateway = process.env.WEIR_ADMIN_URL ?? "http://127.0.0.1:8485";

export default defineConfig({
  plugins: [react(), compressed()],
  build: {
    target: "es2022",
    // An inlined file would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    emptyOutDir: false,
    modulePreload: { polyfill: false },
    // What the first screen needs is one file: a browser takes longer for a dozen small ones.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] } } },
  },
  // Five seconds, the default, are less than a shared machine may stop for.
  test: { include: ["src/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
  server: { proxy: { "/v1": gateway, "/metrics": gateway } },
});

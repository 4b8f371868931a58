// The page of a tool under `/forms`: one script and one style sheet, apart from the console's.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressed } from "./vite.config";

export default defineConfig({
  plugins: [react(), compressed("dist/form", [])],
  build: {
    target: "es2022",
    outDir: "dist/form",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: "src/form-page/main.tsx",
      output: { entryFileNames: "form-[hash].js", assetFileNames: "form-[hash][extname]" },
    },
  },
});

// The documentation site: the pages of docs/ and those at the root of the repository, which `cargo xtask docs` copies into
// `pages/` as they lie there.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";

import { Links } from "./links.ts";
import { relativeAddresses } from "./relative.ts";
import { HOME, sitePath } from "./places.ts";
import { sidebar } from "./sidebar.ts";

const read = (file: string) => readFileSync(new URL(file, import.meta.url), "utf8");
const links = new Links(process.env.WEIR_REPOSITORY ?? "..");

export default defineConfig({
  title: "Weir",
  description: "An MCP gateway that turns forms into tools",
  lang: "en",
  srcDir: "pages",
  outDir: "dist",
  rewrites: sitePath,
  metaChunk: true,
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(read("../icon.svg"))}` }]],
  markdown: {
    // The pages are read as text elsewhere, so what looks like a tag is text: `<contract>`.
    html: false,
    linkify: false,
    anchor: { slugify: Links.slug },
    languageAlias: { cases: "yaml", cedar: "rust" },
    config: (markdown) => links.use(markdown),
  },
  themeConfig: {
    sidebar: sidebar(read(`../pages/${HOME}`)),
    outline: [2, 3],
    // Guides and references come before pages about how Weir was made.
    search: {
      provider: "local",
      options: {
        miniSearch: {
          searchOptions: { boostDocument: (id) => (/^\/(decisions|benchmarks|changelog)/.test(id) ? 0.2 : 1) },
        },
      },
    },
    docFooter: { prev: false, next: false },
    externalLinkIcon: true,
  },
  transformHtml: (html, file, { siteConfig }) => relativeAddresses(html, file, siteConfig.outDir),
  buildEnd: () => links.check(),
});

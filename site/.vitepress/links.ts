// Links between the pages, which are written for a reader of the repository. Each is checked, and leads to the page in the site.
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import type { MarkdownRenderer } from "vitepress";

import { HOME, sitePath } from "./places.ts";

const PAGES = path.resolve(import.meta.dirname, "../pages");
const EXTERNAL = /^[a-z][a-z+.-]*:/;
/** How many links a reader follows at most from the home page to any page of docs/. */
const CLICKS_MAX = 2;

interface Page {
  anchors: Set<string>;
  links: { target: string; anchor: string; written: string }[];
}

export class Links {
  private readonly pages = new Map<string, Page>();

  constructor(private readonly repository: string) {}

  /** Makes the anchor of a heading, as code hosts make it. */
  static slug(heading: string): string {
    return heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
  }

  /** Notes the anchors and links of each page that is rendered, and turns its links into those of the site. */
  use(markdown: MarkdownRenderer) {
    markdown.core.ruler.push("repository-links", (state) => {
      const file = path.relative(PAGES, state.env.realPath ?? state.env.path);
      const page: Page = { anchors: new Set(), links: [] };
      this.pages.set(file, page);
      for (const block of state.tokens) {
        if (block.type === "heading_open") page.anchors.add(block.attrGet("id") ?? "");
        let dropped = 0;
        for (const token of block.children ?? []) {
          const name = token.type === "image" ? "src" : "href";
          const written = token.attrGet(name);
          if (token.type === "link_close" && dropped > 0) {
            dropped -= 1;
            Object.assign(token, { type: "text", tag: "", nesting: 0 });
          }
          if (written === null || EXTERNAL.test(written) || !["image", "link_open"].includes(token.type)) continue;
          if (token.attrGet("class") === "header-anchor") continue;
          const [place, anchor = ""] = written.split("#");
          const target = place === "" ? file : resolve(file, place);
          page.links.push({ target, anchor, written });
          if (token.type === "image") continue;
          if (existsSync(path.join(PAGES, target)) && target.endsWith(".md")) {
            token.attrSet("href", `/${sitePath(target)}${anchor && `#${anchor}`}`);
          } else {
            // A file of the repository that is no page of the site: its name is left.
            dropped += 1;
            Object.assign(token, { type: "text", tag: "", nesting: 0, attrs: null });
          }
        }
      }
    });
  }

  /** Fails, with every dead link and every page that nothing leads to. */
  check() {
    const problems: string[] = [];
    for (const [file, page] of this.pages) {
      for (const { target, anchor, written } of page.links) {
        const dead = (why: string) => problems.push(`${file}: ${written} is dead: ${why}`);
        const found = this.pages.get(target);
        if (!existsSync(path.join(this.repository, target))) dead(`there is no ${target}`);
        else if (anchor && found && !found.anchors.has(anchor)) dead(`${target} has no heading #${anchor}`);
      }
    }
    const clicks = this.clicks();
    for (const file of documents()) {
      const away = clicks.get(file) ?? Infinity;
      if (away > CLICKS_MAX) {
        problems.push(`${file}: no reader finds it; link to it from ${HOME}, or from a page that is linked there`);
      }
    }
    if (problems.length > 0) throw new Error(`${problems.length} faults in links\n${problems.join("\n")}`);
  }

  /** Returns how many links lead from the home page to each page. */
  private clicks(): Map<string, number> {
    const clicks = new Map([[HOME, 0]]);
    for (const [file, away] of clicks) {
      for (const { target } of this.pages.get(file)?.links ?? []) {
        if (this.pages.has(target) && !clicks.has(target)) clicks.set(target, away + 1);
      }
    }
    return clicks;
  }
}

/** Resolves a link of a file to a path in the repository; a folder is meant by its README.md, if it is a page. */
export function resolve(file: string, link: string): string {
  const target = path.posix.join(path.posix.dirname(file), link).replace(/\/$/, "");
  const page = `${target}/README.md`;
  return existsSync(path.join(PAGES, page)) ? page : target;
}

function documents(): string[] {
  const files = readdirSync(PAGES, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".md"));
}

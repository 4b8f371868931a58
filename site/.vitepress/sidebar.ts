// The sidebar is the list of pages in docs/README.md: a group for each heading, an entry for each item that begins with a link.
import type { DefaultTheme } from "vitepress";

import { resolve } from "./links.ts";
import { HOME, sitePath } from "./places.ts";

export function sidebar(home: string): DefaultTheme.SidebarItem[] {
  const groups: DefaultTheme.SidebarItem[] = [];
  for (const line of home.split("\n")) {
    const heading = /^## (.+)$/.exec(line);
    if (heading) groups.push({ text: heading[1], collapsed: false, items: [] });
    const entry = /^- \[([^\]]+)\]\(([^)#]+\.md)\)/.exec(line);
    if (entry) groups.at(-1)?.items?.push({ text: entry[1], link: `/${sitePath(resolve(HOME, entry[2]))}` });
  }
  return groups;
}

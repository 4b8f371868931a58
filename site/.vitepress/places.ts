// Where a file of the repository is in the site.

/** The page that lists all others; it is the site's first page and its sidebar. */
export const HOME = "docs/README.md";

/** Returns the place of a page in the site: `docs/adapters/rest.md` is `adapters/rest.md`. */
export function sitePath(file: string): string {
  if (file === "README.md") return "weir.md";
  const inside = file.startsWith("docs/") ? file.slice("docs/".length) : file.toLowerCase();
  return inside.replace(/(^|\/)README\.md$/, "$1index.md");
}

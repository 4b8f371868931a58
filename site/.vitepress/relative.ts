// The site is read from any folder, also without a web server, so its pages name each other relatively.
import path from "node:path";

/** Makes the addresses in a page relative to it: `/adapters/rest.html` of `index.html` is `adapters/rest.html`. */
export function relativeAddresses(html: string, file: string, root: string): string {
  const up = path.relative(path.dirname(path.resolve(root, file)), root) || ".";
  return html.replace(/ (href|src)="\/([^"/][^"]*)?"/g, (_, name: string, address = "") => {
    const [place, anchor] = address.split("#");
    const target = place === "" || place.endsWith("/") ? `${place}index.html` : place;
    return ` ${name}="${up}/${target}${anchor === undefined ? "" : `#${anchor}`}"`;
  });
}

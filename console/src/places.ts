// The pages of the navigation, in its order.
export interface Place {
  href: string;
  title: string;
  group?: string;
}

export const PLACES: Place[] = [
  { href: "/", title: "Overview" },
  { href: "/drafts", title: "Waiting for review" },
  { href: "/contracts", title: "Contracts", group: "Tools" },
  { href: "/tools", title: "Tools" },
  { href: "/builder", title: "Builder" },
  { href: "/try", title: "Try it" },
  { href: "/keys", title: "Agents and keys", group: "Access" },
  { href: "/audit", title: "Audit" },
  { href: "/servers", title: "Servers", group: "Behind it" },
  { href: "/plugins", title: "Plugins and connections" },
  { href: "/settings", title: "Settings" },
];

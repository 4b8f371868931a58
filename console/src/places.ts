// The pages of the navigation, in its order.
import { mayApprove, mayDo, type Role } from "./session";

export interface Place {
  href: string;
  title: string;
  group?: string;
  /** The role that may read what the page shows; by default a viewer. */
  needs?: Role;
  /** Whether only those who decide about writes read it. */
  isOfApprovers?: boolean;
}

const PLACES: Place[] = [
  { href: "/", title: "Overview" },
  { href: "/drafts", title: "Waiting for review" },
  { href: "/approvals", title: "Approvals", isOfApprovers: true },
  { href: "/contracts", title: "Contracts", group: "Build" },
  { href: "/tools", title: "Tools" },
  { href: "/builder", title: "Builder" },
  { href: "/try", title: "Try it" },
  { href: "/keys", title: "Agents and keys", group: "Access" },
  { href: "/audit", title: "Audit", needs: "auditor" },
  { href: "/servers", title: "Servers", group: "Behind the gateway" },
  { href: "/plugins", title: "Plugins and connections" },
  { href: "/settings", title: "Settings" },
];

/** The pages that the role of this session may read. */
export const readablePlaces = () => PLACES.filter(({ needs = "viewer", isOfApprovers }) => (isOfApprovers ? mayApprove() : mayDo(needs)));

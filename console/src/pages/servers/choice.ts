// Which tools of a server agents see, and under which names: the text of an overlay.
import { stringify } from "yaml";

export interface ToolChoice {
  /** The names at the server of the tools, prompts and templates that are left out. */
  left: string[];
  /** Other names for tools, by their name at the server, without the common prefix. */
  names: Record<string, string>;
}

export const EVERYTHING: ToolChoice = { left: [], names: {} };

/** A name that agents may see. */
export const isToolName = (name: string) => /^[A-Za-z0-9_-]{1,64}$/.test(name);

/** `*` and `?` of a name stand for characters in an overlay, so that such a tool cannot be named individually. */
export const isPattern = (name: string) => /[*?]/.test(name);

/** What is noted of tools that are left out is not written down. */
export function otherNames({ left, names }: ToolChoice): [string, string][] {
  return Object.entries(names).filter(([from, name]) => name !== "" && name !== from && !left.includes(from));
}

/** Null: everything is taken as the server writes it, which needs no overlay. */
export function overlayText(server: string, choice: ToolChoice): string | null {
  const renamed = otherNames(choice);
  if (choice.left.length === 0 && renamed.length === 0) return null;
  const overlay = {
    contract: server,
    upstream: server,
    ...(choice.left.length > 0 && { leave: choice.left }),
    ...(renamed.length > 0 && { tools: renamed.map(([from, tool]) => ({ from, tool })) }),
  };
  return `${head(server)}${stringify(overlay, { lineWidth: 0 })}`;
}

const head = (server: string) => `# Which tools of the server \`${server}\` agents see, and under which names.\n`;

/** A starting overlay, while the names are not known yet. */
export const overlayStart = (server: string) =>
  `${head(server)}contract: ${server}\nupstream: ${server}\n# Names of its tools, prompts and templates: * stands for any characters.\ntake: ["*"]\nleave: []\n`;

/** The lines that take one of its items, or leave it out. */
export function tickItem(choice: ToolChoice, from: string, isTicked: boolean): ToolChoice {
  const others = choice.left.filter((other) => other !== from);
  return { ...choice, left: isTicked ? others : [...others, from] };
}

export const overlayFile = (server: string) => `${server}.yaml`;

/** The names that several of the chosen tools would share. */
export function doubleNames(froms: string[], { left, names }: ToolChoice): string[] {
  const shown = froms.filter((from) => !left.includes(from)).map((from) => names[from] || from);
  return [...new Set(shown.filter((name, at) => shown.indexOf(name) !== at))];
}

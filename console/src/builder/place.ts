// Places in a contract: which part of it a JSON Pointer is in.
import type { Fault } from "../api/problem";
import type { Json } from "../api/shapes";
import { isRecord } from "../schema/exact";
import { pointerPart } from "../schema/model";
import type { Place } from "./edit";

/** What can be selected and inspected. The words are those of the parts of `/v1/form`. */
export type PartKind = "contract" | "collection" | "tool" | "field" | "member" | "element";

export interface Part {
  kind: PartKind;
  at: Place;
}

export const pointerOf = (at: Place) => at.map(pointerPart).join("");

/** Reads a pointer by the value that it points into: `/tools/0` is an item, and a collection may be called `0`. */
export function placeOf(pointer: string, root: Json | undefined): Place {
  const at: Place = [];
  let found = root;
  for (const text of pointer.split("/").slice(1)) {
    const name = text.replaceAll("~1", "/").replaceAll("~0", "~");
    const part = Array.isArray(found) || (found === undefined && /^\d+$/.test(name)) ? Number(name) : name;
    at.push(part);
    found = Array.isArray(found) ? found[part as number] : isRecord(found) ? found[part] : undefined;
  }
  return at;
}

/** Returns where the tools of a text are. A single form is the tool itself. */
export function toolPlaces(root: Json | undefined): Place[] {
  if (Array.isArray(root)) return root.map((_, index) => [index]);
  if (!isRecord(root)) return [];
  if ("contract" in root || "tools" in root || "collections" in root) return Array.isArray(root.tools) ? root.tools.map((_, index) => ["tools", index]) : [];
  return "tool" in root || "fields" in root ? [[]] : [];
}

/** Returns the deepest part that holds a place: a problem at `/tools/0/fields/2/min` is one of the third field. */
export function partAt(at: Place, root: Json | undefined): Part {
  if (at[0] === "collections" && typeof at[1] === "string") return { kind: "collection", at: at.slice(0, 2) };
  const tool = toolPlaces(root).find((place) => place.every((part, index) => part === at[index]));
  if (!tool) return { kind: "contract", at: [] };
  let part: Part = { kind: "tool", at: tool };
  let rest = at.slice(tool.length);
  while (rest.length > 0) {
    const taken = rest[0] === "fields" && typeof rest[1] === "number" ? 2 : rest[0] === "of" && part.kind !== "tool" ? 1 : 0;
    if (taken === 0) break;
    const kind = taken === 1 ? "element" : part.kind === "tool" ? "field" : "member";
    part = { kind, at: [...part.at, ...rest.slice(0, taken)] };
    rest = rest.slice(taken);
  }
  return part;
}

/** Returns the tool that a part is in. */
export function toolOf({ at }: Part, root: Json | undefined): Place | null {
  return toolPlaces(root).find((place) => place.length <= at.length && place.every((part, index) => part === at[index])) ?? null;
}

const isWithin = (place: string, pointer: string) => place === pointer || place.startsWith(`${pointer}/`);

/** The faults of a part and of all that is in it. */
export function faultsWithin(faults: Fault[], at: Place): Fault[] {
  const pointer = pointerOf(at);
  return faults.filter(({ place }) => isWithin(place, pointer));
}

/** The faults of a part that no key of it shows. */
export function faultsOfPart(faults: Fault[], at: Place, keys: string[], root: Json | undefined): Fault[] {
  const pointer = pointerOf(at);
  const shown = keys.map((key) => pointer + pointerPart(key));
  return faultsWithin(faults, at).filter(({ place }) => {
    const deepest = pointerOf(partAt(placeOf(place, root), root).at);
    return deepest === pointer && !shown.some((key) => isWithin(place, key));
  });
}

/** Returns a place's new position after an item was moved and the others made room for it. */
export function placeAfterMove(at: Place, list: Place, from: number, to: number): Place {
  if (!list.every((part, index) => part === at[index]) || typeof at[list.length] !== "number") return at;
  const index = at[list.length] as number;
  const moved = index === from ? to : index > from && index <= to ? index - 1 : index < from && index >= to ? index + 1 : index;
  return [...list, moved, ...at.slice(list.length + 1)];
}

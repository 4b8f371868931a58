// What to change in a text so that a key has another value, leaving all unchanged parts as they are written.
import type { Json } from "../api/shapes";
import { isRecord } from "../schema/exact";
import type { Change, Place } from "./edit";

const isSame = (one: Json | undefined, other: Json | undefined) => JSON.stringify(one) === JSON.stringify(other);

/** Returns the changes that make `before` into `after`: of records and lists the parts that differ. */
export function changesBetween(at: Place, before: Json | undefined, after: Json): Change[] {
  if (isSame(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after) && before.length > 0 && after.length > 0) return listChanges(at, before, after);
  if (isRecord(before) && isRecord(after) && Object.keys(before).some((name) => name in after)) return memberChanges(at, before, after);
  return [{ kind: "set", at, value: after }];
}

function memberChanges(at: Place, before: { [name: string]: Json }, after: { [name: string]: Json }): Change[] {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return [
    ...removed.map((name): Change => ({ kind: "remove", at: [...at, name] })),
    ...Object.entries(after).flatMap(([name, value]) => changesBetween([...at, name], Object.hasOwn(before, name) ? before[name] : undefined, value)),
  ];
}

/** Items are alike from both ends; those between them are changed in place, and then added or removed. */
function listChanges(at: Place, before: Json[], after: Json[]): Change[] {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && isSame(before[start], after[start])) start += 1;
  let tail = 0;
  while (tail < most - start && isSame(before.at(-1 - tail), after.at(-1 - tail))) tail += 1;
  const end = most - tail;
  const changed = after.slice(start, end).flatMap((value, index) => changesBetween([...at, start + index], before[start + index], value));
  const added = after.slice(end, after.length - tail).map((value, index): Change => ({ kind: "insert", at, index: end + index, value }));
  // From the last one, so that those before it keep their places.
  const removed = before.slice(end, before.length - tail).map((_, index): Change => ({ kind: "remove", at: [...at, end + index] }));
  return [...changed, ...added, ...removed.reverse()];
}

/** Returns the changes that remove every occurrence of a name from a list. */
export function removeName(at: Place, list: Json[], name: string): Change[] {
  const places = list.flatMap((item, index) => (String(item) === name ? [index] : []));
  return places.reverse().map((index) => ({ kind: "remove", at: [...at, index] }));
}

/** Returns the change of the value that agents send for a choice. */
export function setChoiceValue(at: Place, choice: Json, value: string): Change[] {
  return [{ kind: "set", at: isRecord(choice) ? [...at, "value"] : at, value }];
}

/** Returns the change of the title that people see for a choice. A choice that had a title remains a record without it. */
export function setChoiceTitle(at: Place, choice: Json, title: string): Change[] {
  if (!isRecord(choice)) return title === "" ? [] : [{ kind: "set", at, value: { value: choice, title } }];
  if (title !== "") return [{ kind: "set", at: [...at, "title"], value: title }];
  return Object.hasOwn(choice, "title") ? [{ kind: "remove", at: [...at, "title"] }] : [];
}

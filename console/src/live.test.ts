import { expect, test } from "vitest";
import { splitEvents } from "./live";

test("events are whole before they are read", () => {
  const first = splitEvents('event: stats\ndata: {"calls":1}\n\n:\n\nevent: ke');
  expect(first.events).toEqual([["stats", '{"calls":1}']]);
  expect(splitEvents(`${first.rest}y\ndata: {}\n\n`)).toEqual({ events: [["key", "{}"]], rest: "" });
});

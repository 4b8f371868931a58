import { expect, test } from "vitest";
import { cutCode } from "./code-text";

const shown = (sentence: string) => cutCode(sentence).map(({ text, isCode }) => (isCode ? `<${text}>` : text));

test("what is typed is known by the words around it", () => {
  expect(shown("Say it by `date:` under `shape:`.")).toEqual(["Say it by ", "<date:>", " under ", "<shape:>", "."]);
  expect(shown("`Sent: …` is it")).toEqual(["<Sent: …>", " is it"]);
  expect(shown("plain")).toEqual(["plain"]);
  expect(shown("one ` alone")).toEqual(["one ` alone"]);
  expect(shown("`` of nothing")).toEqual(["`` of nothing"]);
  expect(shown("")).toEqual([]);
});

import { expect, test } from "vitest";
import { byFile } from "./fault-files";

test("each file has its own faults, in the order they came", () => {
  const fault = (file: string, message: string) => ({ file, place: "", message });
  const files = byFile([fault("b.cedar", "1"), fault("a.cedar", "2"), fault("b.cedar", "3")]);
  expect(files.map(([file, own]) => [file, own.map(({ message }) => message)])).toEqual([
    ["b.cedar", ["1", "3"]],
    ["a.cedar", ["2"]],
  ]);
});

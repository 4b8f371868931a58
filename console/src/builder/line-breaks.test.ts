import { EditorState } from "@codemirror/state";
import { expect, test } from "vitest";
import { lineBreakOf, withLineBreaks } from "./line-breaks";

test("what an editor holds becomes the text again, with its line breaks", () => {
  for (const text of ["a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n", "a: 1\rb: 2", "a: 1", ""]) {
    const held = withLineBreaks(text, "\n");
    // It is what CodeMirror makes of the text, so that the editor is not filled again.
    expect(EditorState.create({ doc: text }).doc.toString()).toBe(held);
    expect(withLineBreaks(held, lineBreakOf(text))).toBe(text);
  }
});

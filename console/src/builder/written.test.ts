import { expect, test } from "vitest";
import { writeFlow, writePair } from "./written";

test("a text that the gateway would read as a number is quoted", () => {
  for (const text of ["0b11", "-0B1", "+0b0", "0o17", "-0o7", "0x1F", "+0X1f"]) {
    expect(writeFlow(text, "block")).toBe(JSON.stringify(text));
    expect(writeFlow([text], "flow")).toBe(`["${text}"]`);
    expect(writePair(text, text, "block", 0)).toBe(`"${text}": "${text}"`);
  }
  expect(writeFlow("0 boxes", "block")).toBe("0 boxes");
});

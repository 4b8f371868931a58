import { expect, test } from "vitest";
import { isAnswer, readStored } from "./issuer-sign-in";

test.each([
  ["code=a&state=b&iss=https%3A%2F%2Fid.example", true],
  ["error=access_denied&state=b", true],
  ["code=a", false],
  ["", false],
])("whether %s is the answer of an issuer: %s", (query, expected) => {
  expect(isAnswer(query)).toBe(expected);
});

test("a person comes back to the page that was left, and to no link that signs in", () => {
  expect(readStored(JSON.stringify({ tab: "t", hash: "#/audit?text=a" }))).toEqual({ tab: "t", hash: "#/audit?text=a" });
  expect(readStored(JSON.stringify({ tab: "t", hash: "#link=x" }))?.hash).toBe("");
  expect(readStored(null)).toBeNull();
});

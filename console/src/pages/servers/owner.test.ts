import { expect, test } from "vitest";
import { disconnectEffect } from "./owner";

test("the end of an account names the callers that are asked again", () => {
  expect(disconnectEffect("agent ann", "notes")).toMatch(/^The next call by ann asks for a sign-in again\./);
  expect(disconnectEffect("tenant acme", "notes")).toMatch(/^The next call by any agent of acme asks/);
});

test("the end of the gateway's own account names the command that connects it anew", () => {
  expect(disconnectEffect("gateway", "notes")).toContain("weir upstream connect notes");
});

test("an owner that is written in another way is named as it is", () => {
  expect(disconnectEffect("someone", "notes")).toMatch(/^The next call by someone asks/);
});

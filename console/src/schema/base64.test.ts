import { expect, test } from "vitest";
import { asBase64 } from "./base64";
import { fieldModel } from "./model";

test("bytes become base64, however many", () => {
  expect(asBase64(new Uint8Array([0, 255, 16]))).toBe("AP8Q");
  expect(asBase64(new Uint8Array(100_000)).length).toBe(133_336);
});

test("a text of encoded bytes is a file", () => {
  const schema = { type: "string", contentEncoding: "base64" };
  expect(fieldModel(schema, schema).kind).toBe("file");
});

import { expect, test } from "vitest";
import { exactInteger, parseExact } from "./exact";
import { typedNumber } from "./model";

test.each(['{"id":9007199254740993}', '[-9223372036854775808,[18446744073709551615]]', '{"a":1,"b":[0.5,"x",null,true]}'])("%s keeps every digit", (text) => {
  expect(JSON.stringify(parseExact(text))).toBe(text);
});

test("what a number can hold is a number", () => {
  expect(parseExact('[1,-2.5,1e3,9007199254740991]')).toEqual([1, -2.5, 1000, 9007199254740991]);
  expect(exactInteger("7")).toBe(7);
});

test("a large integer that is typed is sent as an integer", () => {
  expect(JSON.stringify({ id: typedNumber("9007199254740993") })).toBe('{"id":9007199254740993}');
});

test("a text that is not JSON is an error", () => {
  expect(() => parseExact("{")).toThrow(SyntaxError);
});

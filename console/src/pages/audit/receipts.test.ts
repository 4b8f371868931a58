import { expect, test } from "vitest";
import { findReceipts, receiptFault } from "./receipts";

const receipt = (number: number) => `20261127T211304Z-3928-f54fa9ee:${number}:${"0a".repeat(32)}`;

test.each([
  ["lines", `${receipt(1)}\n${receipt(2)}\n`],
  ["JSON", JSON.stringify({ receipt: receipt(1), others: [receipt(2), receipt(1)] })],
  ["a log", `kept receipt=${receipt(1)}, then "${receipt(2)}".`],
])("receipts are found in %s, each once", (_, text) => {
  expect(findReceipts(text)).toEqual([receipt(1), receipt(2)]);
  expect(receiptFault(text)).toBeUndefined();
});

test("a receipt that is cut off is not a receipt", () => {
  expect(findReceipts(receipt(1).slice(0, -1))).toEqual([]);
  expect(receiptFault(receipt(1).slice(0, -1))).toContain("no whole receipt");
  expect(receiptFault(" ")).toBeUndefined();
});

test("more than the gateway checks at once are counted", () => {
  const all = Array.from({ length: 101 }, (_, number) => receipt(number + 1)).join("\n");
  expect(receiptFault(all)).toContain("101 receipts: at most 100");
});

// Receipts in what people paste: a list, JSON, a log, a page that was copied.

/** Receipts that the gateway checks at once. */
export const RECEIPTS_MAX = 100;

/** `chain:number:hash`. */
const RECEIPT = /\b[0-9TZ]{16}-\d+-[0-9a-f]{8}:\d+:[0-9a-f]{64}\b/g;

/** Returns the receipts of a text, each once. */
export const findReceipts = (text: string): string[] => [...new Set(text.match(RECEIPT) ?? [])];

/** Returns why these cannot be checked. */
export function receiptFault(text: string): string | undefined {
  const found = findReceipts(text).length;
  if (text.trim() !== "" && found === 0) return "There is no whole receipt in this. One is chain:number:hash, such as 20261127T211304Z-3928-f54fa9ee:37:b077….";
  return found > RECEIPTS_MAX ? `${found} receipts: at most ${RECEIPTS_MAX} are checked at once.` : undefined;
}

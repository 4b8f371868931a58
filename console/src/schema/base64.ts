// Bytes as base64.

/** The number of characters that a function call takes as arguments. */
const PART = 0x8000;

export function asBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PART) text += String.fromCharCode(...bytes.subarray(at, at + PART));
  return btoa(text);
}

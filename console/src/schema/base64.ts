// Bytes as base64.

/** Characters that a call of a function takes as arguments. */
const PART = 0x8000;

export function asBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PART) text += String.fromCharCode(...bytes.subarray(at, at + PART));
  return btoa(text);
}

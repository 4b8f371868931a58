// Sentences of the gateway, in which code is between backticks.

/** A part of a sentence: words, or something to type. */
export interface TextPart {
  text: string;
  isCode: boolean;
}

/** Splits a sentence at its backticks. An unpaired one is an ordinary character. */
export function cutCode(sentence: string): TextPart[] {
  const parts: TextPart[] = [];
  let from = 0;
  for (const match of sentence.matchAll(/`([^`]+)`/g)) {
    if (match.index > from) parts.push({ text: sentence.slice(from, match.index), isCode: false });
    parts.push({ text: match[1] ?? "", isCode: true });
    from = match.index + match[0].length;
  }
  if (from < sentence.length) parts.push({ text: sentence.slice(from), isCode: false });
  return parts;
}

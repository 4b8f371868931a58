// The line breaks of a text: a file of Windows keeps its own.

/** Returns the first line break of a text. */
export const lineBreakOf = (text: string) => /\r\n?|\n/.exec(text)?.[0] ?? "\n";

/** Returns the text with one line break for all of its lines. */
export const withLineBreaks = (text: string, lineBreak: string) => text.replace(/\r\n?|\n/g, lineBreak);

// A difference of two texts by lines, with what did not change left out.
import { diffLines } from "diff";

export interface TextLine {
  kind: "same" | "added" | "removed";
  number: number;
  text: string;
}

export interface Skipped {
  kind: "skipped";
  lines: number;
}

/** Lines that are shown around a change. */
const CONTEXT_LINES = 3;

export function textDifference(before: string, after: string): (TextLine | Skipped)[] {
  const lines: TextLine[] = [];
  let [old, now] = [0, 0];
  for (const part of diffLines(before, after)) {
    const kind = part.added ? "added" : part.removed ? "removed" : "same";
    for (const text of part.value.replace(/\n$/, "").split("\n")) {
      if (kind !== "added") old += 1;
      if (kind !== "removed") now += 1;
      lines.push({ kind, text, number: kind === "removed" ? old : now });
    }
  }
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - CONTEXT_LINES), at + CONTEXT_LINES + 1).some((line) => line.kind !== "same"),
  );
  const shown: (TextLine | Skipped)[] = [];
  lines.forEach((line, at) => {
    const last = shown.at(-1);
    if (isNear[at]) shown.push(line);
    else if (last?.kind === "skipped") last.lines += 1;
    else shown.push({ kind: "skipped", lines: 1 });
  });
  return shown;
}

// Two texts line by line, without what is the same in both.
import { useMemo } from "react";
import { count } from "../../parts/words";
import { textDifference } from "./lines";

const SIGNS = { same: " ", added: "+", removed: "−" };

export function TextLines({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = useMemo(() => textDifference(before, after), [before, after]);
  return (
    <div className="lines" role="group" aria-label={label} tabIndex={0}>
      <div>
        {lines.map((line, index) =>
          line.kind === "skipped" ? (
            <div key={index} className="skipped">
              {count(line.lines, "line")} the same
            </div>
          ) : (
            <div key={index} className={`line ${line.kind}`}>
              <span>{line.number}</span>
              <span>{SIGNS[line.kind]}</span>
              <span>{line.text}</span>
            </div>
          ),
        )}
      </div>
    </div>
  );
}

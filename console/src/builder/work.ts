// The work on one contract: its text with what can be undone, kept by this browser until it is submitted.
import { useCallback, useEffect, useRef, useState } from "react";
import type { Json } from "../api/shapes";
import { currentAdmin } from "../session";
import { changeText, readText, UneditableText, type Change } from "./edit";
import { pushText, redoText, startHistory, undoText, type TextHistory } from "./history";
import { WorkKeeper, type WorkBase } from "./kept-work";

export interface TextWork {
  text: string;
  base: WorkBase;
  setBase: (base: WorkBase) => void;
  isChanged: boolean;
  /** Why the last change could not be made. */
  refusal: string;
  history: TextHistory;
  setText: (text: string, label?: string) => void;
  change: (changes: Change[], label?: string) => void;
  undo: () => void;
  redo: () => void;
  /** Discards the work and begins with another text. */
  restart: (base: WorkBase) => void;
}

/** `begun` is the starting text, if none was kept. */
export function useWork(name: string, begun: WorkBase): TextWork {
  const [keeper] = useState(() => new WorkKeeper(currentAdmin(), name));
  const [kept] = useState(() => keeper.read());
  const [base, setBase] = useState<WorkBase>(kept?.base ?? begun);
  const [history, setHistory] = useState(() => startHistory(kept?.text ?? base.text));
  const [refusal, setRefusal] = useState("");
  const { text } = history;
  useEffect(() => keeper.keep(text, base), [keeper, text, base]);
  // One event may make several changes before the page is drawn.
  const latest = useRef(history);
  latest.current = history;
  const go = useCallback((next: TextHistory) => {
    latest.current = next;
    setHistory(next);
    setRefusal("");
  }, []);
  const setText = useCallback((next: string, label = "") => go(pushText(latest.current, next, label, Date.now())), [go]);
  const change = useCallback(
    (changes: Change[], label = "") => {
      try {
        setText(changes.reduce(changeText, latest.current.text), label);
      } catch (caught) {
        if (!(caught instanceof UneditableText)) throw caught;
        setRefusal(caught.message);
      }
    },
    [setText],
  );
  const restart = (next: WorkBase) => {
    setBase(next);
    setText(next.text);
  };
  const undo = () => go(undoText(latest.current));
  const redo = () => go(redoText(latest.current));
  return { text, base, setBase, isChanged: text !== base.text, refusal, history, setText, change, undo, redo, restart };
}

/** Returns the value of a text; undefined if it is not YAML. */
export const valueOfText = (text: string): Json | undefined => readText(text).value;

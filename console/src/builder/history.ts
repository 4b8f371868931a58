// What can be undone and redone of a text.

export interface TextHistory {
  past: string[];
  text: string;
  future: string[];
  /** What the last change was of, and when. */
  last: { label: string; ms: number };
}

/** Changes of the same thing within this time are undone together. */
const TOGETHER_MS = 1_200;
const PAST_MAX = 200;

export const startHistory = (text: string): TextHistory => ({ past: [], text, future: [], last: { label: "", ms: 0 } });

/** `label` names what is changed: keys typed in one field are one change. */
export function pushText(history: TextHistory, text: string, label: string, ms: number): TextHistory {
  if (text === history.text) return history;
  const { last } = history;
  const isSame = label !== "" && label === last.label && ms - last.ms < TOGETHER_MS && history.past.length > 0;
  const past = isSame ? history.past : [...history.past, history.text].slice(-PAST_MAX);
  return { past, text, future: [], last: { label, ms } };
}

export function undoText(history: TextHistory): TextHistory {
  const text = history.past.at(-1);
  if (text === undefined) return history;
  return { past: history.past.slice(0, -1), text, future: [history.text, ...history.future], last: { label: "", ms: 0 } };
}

export function redoText(history: TextHistory): TextHistory {
  const [text, ...future] = history.future;
  if (text === undefined) return history;
  return { past: [...history.past, history.text], text, future, last: { label: "", ms: 0 } };
}

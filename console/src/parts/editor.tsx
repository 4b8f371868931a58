// A text with colours and places of faults. It is loaded where it is needed.
import { autocompletion, completionKeymap, startCompletion, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { Annotation, EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, hoverTooltip, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Fault } from "../api/problem";
import type { JsonSchema } from "../api/shapes";
import { helpAt, suggestAt } from "../builder/completion";
import { lineBreakOf, withLineBreaks } from "../builder/line-breaks";
import { linesOfPlace } from "./fault-lines";

interface EditorProps {
  text: string;
  onChange: (text: string) => void;
  faults: Fault[];
  label: string;
  /** The part that is selected elsewhere, as a JSON Pointer: its lines are marked and shown. */
  place?: string;
  /** Whether it has its own undo. If the page has it, its keys are passed on to the page. */
  hasHistory?: boolean;
  /** What the text may contain, which is offered while it is typed. */
  schema?: JsonSchema;
}

/** Marks a change that comes from outside the editor. */
const fromOutside = Annotation.define<boolean>();

/** Highlighted lines, which an effect sets. */
function markedLines(name: string) {
  const set = StateEffect.define<number[]>();
  const look = Decoration.line({ class: name });
  const field = StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(lines, transaction) {
      let next = lines.map(transaction.changes);
      for (const effect of transaction.effects) {
        if (!effect.is(set)) continue;
        const { doc } = transaction.state;
        const places = [...new Set(effect.value)].filter((line) => line >= 1 && line <= doc.lines).sort((a, b) => a - b);
        next = Decoration.set(places.map((line) => look.range(doc.line(line).from)));
      }
      return next;
    },
    provide: (of) => EditorView.decorations.from(of),
  });
  return { set, field };
}

const faultLines = markedLines("cm-fault");
const placeLines = markedLines("cm-place");

/** The part that differs: cursors elsewhere are not moved. */
function differingPart(before: string, after: string) {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) from += 1;
  let tail = 0;
  while (tail < most - from && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  return { from, to: before.length - tail, insert: after.slice(from, after.length - tail) };
}

/** A paragraph for each line. */
function paragraphs(lines: string[]): HTMLElement {
  const box = document.createElement("div");
  box.className = "cm-help";
  for (const line of lines.filter(Boolean)) box.appendChild(document.createElement("p")).textContent = line;
  return box;
}

/** Offers the keys and words of a place, and explains the key under the pointer. */
function assistance(schema: () => JsonSchema | undefined) {
  const source: CompletionSource = (context) => {
    const known = schema();
    const found = known && suggestAt(known, context.state.doc.toString(), context.pos);
    const isTyped = /\w/.test(context.state.sliceDoc(context.pos - 1, context.pos));
    if (!found || !(context.explicit || isTyped)) return null;
    const options = found.options.map(({ label, text, detail, help, kind }) => ({
      label,
      apply: text,
      detail,
      type: kind === "key" ? "property" : "enum",
      ...(help && { info: () => paragraphs([help]) }),
    }));
    return { from: found.from, options, validFor: /^[\w-]*$/ };
  };
  const hover = hoverTooltip((view, position) => {
    const known = schema();
    const found = known && helpAt(known, view.state.doc.toString(), position);
    return found ? { pos: found.from, end: found.to, above: true, create: () => ({ dom: paragraphs([`${found.key}: ${found.type}`, found.help]) }) } : null;
  });
  // The system may have Ctrl + Space for itself.
  const keys = keymap.of([...completionKeymap, { key: "Alt-Enter", run: startCompletion }]);
  return [autocompletion({ override: [source], icons: false, defaultKeymap: false }), keys, hover];
}

const looks = EditorView.theme({
  "&": { fontSize: "0.8125rem", backgroundColor: "var(--surface)", color: "var(--ink)", minHeight: "24rem" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--mono)", padding: "0.75rem 0", caretColor: "var(--ink)", minHeight: "24rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-soft)", border: "none", fontFamily: "var(--mono)" },
  ".cm-place": { boxShadow: "inset 3px 0 0 var(--accent)", backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--ink)", border: "1px solid var(--line-strong)", borderRadius: "var(--radius)", boxShadow: "var(--shadow)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "0.2rem 0.6rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.8" },
  ".cm-tooltip.cm-completionInfo, .cm-tooltip-hover": { padding: "0.5rem 0.75rem", maxWidth: "22rem", fontFamily: "var(--font)" },
  ".cm-help p": { margin: "0" },
  ".cm-fault": { backgroundColor: "var(--bad-soft)" },
});

const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)", fontWeight: "600" },
    { tag: tags.comment, color: "var(--ink-soft)", fontStyle: "italic" },
    { tag: [tags.string, tags.attributeValue], color: "var(--good)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
    { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--ink-soft)" },
  ]),
);

/** It is drawn under a shadow root: there its styles are separate style sheets, which the content security policy
 * allows; in the page they would be style elements, which it refuses. */
export default function Editor({ text, onChange, faults, label, place = "", hasHistory = true, schema }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const known = useRef(schema);
  known.current = schema;
  // The editor ends lines by LF, whatever the text does.
  const held = withLineBreaks(text, "\n");
  const changed = useRef(onChange);
  changed.current = (next) => onChange(withLineBreaks(next, lineBreakOf(text)));
  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const isDark = getComputedStyle(host.current).colorScheme === "dark" || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    const state = EditorState.create({
      doc: held,
      extensions: [
        lineNumbers(),
        hasHistory ? [history(), keymap.of(historyKeymap)] : [],
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        yaml(),
        colours,
        faultLines.field,
        placeLines.field,
        assistance(() => known.current),
        // Tab leaves the editor: a person without a mouse has to get out of it.
        keymap.of(defaultKeymap),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => {
          const isOwn = update.transactions.some((transaction) => transaction.docChanged && !transaction.annotation(fromOutside));
          if (isOwn) changed.current(update.state.doc.toString());
        }),
        looks,
        EditorView.theme({}, { dark: isDark }),
      ],
    });
    const made = new EditorView({ state, root, parent: root });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
    // The text of the beginning; later ones come below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [label, hasHistory]);
  useEffect(() => {
    const before = view.current?.state.doc.toString();
    if (before === undefined || before === held) return;
    view.current?.dispatch({ changes: differingPart(before, held), annotations: fromOutside.of(true) });
  }, [held]);
  useEffect(() => {
    const made = view.current;
    if (!made) return;
    const [from, to] = linesOfPlace(made.state.doc.toString(), place) ?? [0, -1];
    const lines = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
    // On a narrow screen the text is below the parts, and the page would jump.
    const isBeside = matchMedia("(min-width: 78rem)").matches;
    const shown = from >= 1 && isBeside && !made.hasFocus ? [EditorView.scrollIntoView(made.state.doc.line(Math.min(from, made.state.doc.lines)).from, { y: "nearest" })] : [];
    made.dispatch({ effects: [placeLines.set.of(lines), ...shown] });
  }, [place, held]);
  useEffect(() => {
    view.current?.dispatch({ effects: faultLines.set.of(faults.flatMap(({ line }) => (line ? [line] : []))) });
  }, [faults]);
  return <div className="editor" ref={host} />;
}

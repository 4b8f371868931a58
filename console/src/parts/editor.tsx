// A text with colours and places of faults. It is loaded where it is needed.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Fault } from "../api/problem";

interface EditorProps {
  text: string;
  onChange: (text: string) => void;
  faults: Fault[];
  label: string;
}

const setFaultLines = StateEffect.define<number[]>();
const faultLine = Decoration.line({ class: "cm-fault" });

const faultLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(lines, transaction) {
    let next = lines.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setFaultLines)) continue;
      const { doc } = transaction.state;
      const places = [...new Set(effect.value)].filter((line) => line >= 1 && line <= doc.lines).sort((a, b) => a - b);
      next = Decoration.set(places.map((line) => faultLine.range(doc.line(line).from)));
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const looks = EditorView.theme({
  "&": { fontSize: "0.8125rem", backgroundColor: "var(--surface)", color: "var(--ink)", minHeight: "24rem" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--mono)", padding: "0.75rem 0", caretColor: "var(--ink)", minHeight: "24rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-soft)", border: "none", fontFamily: "var(--mono)" },
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

/** It is drawn under a shadow root: there its styles are style sheets of their own, which the content security policy
 * allows; in the page they would be style elements, which it refuses. */
export default function Editor({ text, onChange, faults, label }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const isDark = getComputedStyle(host.current).colorScheme === "dark" || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    const state = EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        yaml(),
        colours,
        faultLines,
        // Tab leaves the editor: a person without a mouse has to get out of it.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && changed.current(update.state.doc.toString())),
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
    // The text of the beginning; what is typed is the editor's own.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [label]);
  useEffect(() => {
    view.current?.dispatch({ effects: setFaultLines.of(faults.flatMap(({ line }) => (line ? [line] : []))) });
  }, [faults]);
  return <div className="editor" ref={host} />;
}

// What the parts of the builder share.
import { createContext, useContext } from "react";
import type { FormView } from "../api/form";
import type { Fault } from "../api/problem";
import type { Json } from "../api/shapes";
import type { SourceColumn } from "../schema/columns";
import type { Change, Place } from "./edit";
import type { Part } from "./place";

export interface BuilderState {
  /** The value of the text; while the text is not YAML, that of the last one that was. */
  root: Json | undefined;
  form: FormView;
  /** The problems that the gateway finds. */
  faults: Fault[];
  part: Part;
  /** The verb of the selected tool, and the columns of its collection. */
  verb: string | null;
  columns: SourceColumn[];
  /** Selects the part that a place is in. */
  selectPointer: (pointer: string) => void;
  /** Replaces the whole text. `notes` are remarks about the new one. */
  replaceText: (text: string, notes: string[]) => void;
  select: (at: Place, options?: { focus?: boolean }) => void;
  /** Makes changes that are undone together. Those of the same label that follow quickly are undone together too. */
  change: (changes: Change[], label?: string) => void;
}

export const BuilderContext = createContext<BuilderState | null>(null);

export function useBuilder(): BuilderState {
  const state = useContext(BuilderContext);
  if (!state) throw new Error("there is no builder around this part");
  return state;
}

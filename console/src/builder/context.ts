// What the parts of the builder share.
import { createContext, useContext } from "react";
import type { FormView } from "../api/form";
import type { Fault } from "../api/problem";
import type { Json } from "../api/shapes";
import type { SourceColumn } from "../schema/columns";
import type { Change, Place } from "./edit";
import type { Part } from "./place";

export interface BuilderState {
  /** The value of the text; of the last text that was YAML where it is none now. */
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
  /** Puts another text in the place of all. `notes` say what to know of it. */
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

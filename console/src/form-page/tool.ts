// The tool of a page, as the page holds it.
import type { JsonSchema } from "../api/shapes";
import { parseExact } from "../schema/exact";

export interface FormTool {
  inputSchema: JsonSchema;
  writes: boolean;
}

/** Reads the tool. Choices and bounds of 64 bits keep their digits. */
export const readTool = (text: string): FormTool => parseExact(text) as unknown as FormTool;

// The page of one tool under `/forms`, which the gateway serves to agents' people. It reads the tool from a block of the page.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./form-page.css";
import { parseExact } from "../schema/exact";
import { ToolForm, type FormTool } from "./tool-form";

const root = document.getElementById("form");
const tool = document.getElementById("tool")?.textContent;
if (root && tool) {
  createRoot(root).render(
    <StrictMode>
      <ToolForm tool={parseExact(tool) as unknown as FormTool} />
    </StrictMode>,
  );
}

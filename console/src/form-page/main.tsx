// The page of one tool under `/forms`, which the gateway serves to agents' people. It reads the tool from a block of the page.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./form-page.css";
import { readTool } from "./tool";
import { ToolForm } from "./tool-form";

const root = document.getElementById("form");
const tool = document.getElementById("tool")?.textContent;
if (root && tool) {
  createRoot(root).render(
    <StrictMode>
      <ToolForm tool={readTool(tool)} />
    </StrictMode>,
  );
}

// Answers one ticket at once, as a typed function.
// @ts-check
import { list, plugin, record, text, tool } from "./sdk/weir.js";

const lookupTicket = tool({
  name: "lookup_ticket",
  description: "Look a ticket up by its id",
  readOnly: true,
  parameters: { ticket_id: text({ pattern: "^T-[0-9]{1,9}$", description: "Ticket id, for example T-1001" }) },
  returns: record({
    ticket_id: text(),
    title: text(),
    status: text(),
    priority: text(),
    assignee: text(),
    tags: list(text()),
    description: text(),
  }),
  run: ({ ticket_id }) => ({
    ticket_id,
    title: "Printer on floor 3 is out of toner",
    status: "open",
    priority: "high",
    assignee: "dana@example.com",
    tags: ["hardware", "office"],
    description: "x".repeat(304),
  }),
});

export const { about, tools } = plugin({ name: "lookup", version: "0.1.0", tools: [lookupTicket] });

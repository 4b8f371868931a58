// What the OpenAPI document calls an object: the shapes of compiled documents, differences and records.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type ContractView = Schemas["ContractView"];
export type ContractDetail = Schemas["ContractDetail"];
export type ContractPreview = Schemas["ContractPreview"];
export type CatalogueTool = Schemas["ServedTool"];
export type DraftView = Schemas["DraftView"];
export type VersionView = Schemas["VersionView"];
export type Impact = Schemas["Impact"];
export type AgentImpact = Schemas["AgentImpact"];
export type KeepingView = Schemas["KeepingView"];
export type KeptView = Schemas["KeptView"];
export type PinView = Schemas["PinView"];
export type PlanView = Schemas["PlanView"];
export type PlannedWrite = Schemas["PlannedWrite"];
export type KeyView = Schemas["KeyView"];
export type MadeKey = Schemas["MadeKey"];
export type IdentityFailure = Schemas["IdentityFailure"];
export type AdminView = Schemas["AdminView"];
export type UpstreamView = Schemas["UpstreamView"];
export type AccountView = Schemas["AccountView"];
export type UpstreamOffer = Schemas["UpstreamOffer"];
export type PluginView = Schemas["PluginView"];
export type CollectionView = Schemas["CollectionView"];
export type Tried = Schemas["Tried"];
export type PolicyCaseResult = Schemas["PolicyCaseResult"];
export type PolicyDecision = Schemas["PolicyDecision"];
export type PolicyNote = Schemas["PolicyNote"];
export type PolicyStatus = Schemas["PolicyStatus"];
export type PolicyView = Schemas["PolicyView"];
export type Submitted = Schemas["Submitted"];
export type ChangeClass = Schemas["ChangeClass"];
export type ConnectionView = Schemas["ConnectionView"];
export type ConnectionCheck = Schemas["ConnectionCheck"];
export type SourceEntry = Schemas["SourceEntry"];

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonSchema = { [keyword: string]: Json };

export type SourceRows = Omit<Schemas["SourceRows"], "rows"> & { rows: { [column: string]: Json }[] };

export interface ToolDocument {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: {
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
}

export interface ContractDocument {
  contract?: string;
  version?: string;
  tools: ToolDocument[];
  prompts?: { name: string; description?: string }[];
  resources?: { uri: string; name?: string }[];
  resourceTemplates?: { uriTemplate: string; name?: string }[];
}

export interface DiffItem {
  rule: string;
  path: string;
  side?: "input" | "output";
  tool?: string;
  class: ChangeClass;
  old: Json;
  new: Json;
  reason: string;
  witness?: Json;
}

export interface DiffReport {
  class: ChangeClass;
  breaking: boolean;
  fingerprint: string;
  items: DiffItem[];
  impact?: Impact;
}

export interface Finding {
  tool?: string;
  field?: string;
  rule: string;
  level: "info" | "warning" | "error";
  message: string;
  hint: string;
}

export interface ArgumentError {
  field?: string;
  path: string;
  reason: string;
  constraint?: Json;
  example?: Json;
  suggestion?: Json;
}

export interface CallError {
  code: string;
  call_id: string;
  message?: string;
  errors?: ArgumentError[];
}

export interface WrittenRecord {
  seq: number;
  time: string;
  kind: string;
  hash: string;
  prev: string;
  [member: string]: Json | undefined;
}

export interface AuditRecord extends WrittenRecord {
  /** `chain:seq:hash`, which proves the record. */
  receipt: string;
}

/** The record that the receipt proves, if it was found. */
export type ReceiptCheck = Omit<Schemas["ReceiptCheck"], "record"> & { record?: WrittenRecord | null };
export type AuditReport = Omit<Schemas["TrailReport"], "receipts"> & { receipts: ReceiptCheck[] };

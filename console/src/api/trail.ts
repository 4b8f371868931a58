// The audit trail: records, single ones with their neighbours in the chain, and whether the whole trail is intact.
import { useQuery } from "@tanstack/react-query";
import { total } from "../metrics";
import { currentToken, mayDo } from "../session";
import { api, unwrap } from "./client";
import { ProblemError, readProblem, unreachable } from "./problem";
import { LIST_MS, readSamples } from "./queries";
import type { AuditRecord, AuditReport } from "./shapes";

export interface AuditFilter {
  since?: string;
  until?: string;
  /** `TIME,RECEIPT` of a record: those before it. */
  before?: string;
  kind?: string;
  agent?: string;
  tool?: string;
  contract?: string;
  outcome?: string;
  call_id?: string;
  text?: string;
  limit?: number;
}

/** Reads the newest records that fit, the newest first. */
const readRecords = async (filter: AuditFilter) =>
  (await unwrap(api.GET("/v1/audit", { params: { query: { ...filter, order: "desc" } } }))) as unknown as AuditRecord[];

export const useAudit = (filter: AuditFilter, follow: boolean) =>
  useQuery({
    queryKey: ["audit", filter],
    queryFn: () => readRecords(filter),
    refetchInterval: follow ? 2_000 : false,
    placeholderData: (before) => before,
  });

/** The place of a record in the order of all, for the records before it. */
export const placeOfRecord = ({ time, receipt }: AuditRecord) => `${time},${receipt}`;

/** Few records name a hash: the record itself, the next in its chain, and those that state the ends of other chains. */
const NAMING_MAX = 100;

/** One record, with those before and after it in its chain. `since` is its time, where it is known. */
export const useRecord = (hash: string, since?: string) =>
  useQuery({
    queryKey: ["record", hash],
    queryFn: async () => {
      const naming = await readRecords({ text: hash, since, limit: NAMING_MAX });
      const record = naming.find((one) => one.hash === hash);
      if (!record) return null;
      const after = naming.find((one) => one.prev === hash) ?? null;
      // The previous record contains its own hash, and records of one chain are mostly adjacent: few are read.
      const earlier = record.seq > 1 ? await readRecords({ text: record.prev, before: placeOfRecord(record), limit: 5 }) : [];
      return { record, before: earlier.find((one) => one.hash === record.prev) ?? null, after };
    },
    enabled: hash !== "",
    retry: false,
  });

/** All records of a call, the oldest first. */
export const useCallRecords = (callId: string) =>
  useQuery({
    queryKey: ["call-records", callId],
    queryFn: async () =>
      (await unwrap(api.GET("/v1/audit/{call_id}", { params: { path: { call_id: callId } } }))).records as unknown as AuditRecord[],
    enabled: callId !== "",
    retry: false,
  });

/** The proof of one record as a file, for `weir audit verify --file`. */
export async function proveRecord({ receipt }: AuditRecord): Promise<Blob> {
  const record = receipt.split(":").slice(0, 2).join(":");
  const proof = await unwrap(api.GET("/v1/audit/{call_id}/proof", { params: { path: { call_id: record } } }));
  return new Blob([JSON.stringify(proof)], { type: "application/json" });
}

/** All matching records, as JSON lines; the limit and the position of a page do not apply. */
export async function exportRecords({ limit: _limit, before: _before, ...filter }: AuditFilter): Promise<Blob> {
  const wanted = Object.entries(filter);
  const query = new URLSearchParams(wanted.filter((entry): entry is [string, string] => entry[1] !== undefined));
  const headers = { Authorization: `Bearer ${currentToken() ?? ""}` };
  const response = await fetch(`/v1/audit/export?${query}`, { headers }).catch(() => unreachable());
  if (!response.ok) throw new ProblemError(await readProblem(response));
  return response.blob();
}

/** Whether the trail is whole, and the record of each receipt. */
export const verifyTrail = async (receipts: string[]) =>
  (await unwrap(api.POST("/v1/audit/verify", { body: { receipts } }))) as unknown as AuditReport;

/** Whether records cannot be written now. An auditor has no figures, and cannot tell where scrapers need a token. */
export const useTrailFailure = () =>
  useQuery({
    queryKey: ["trail-failure"],
    queryFn: async () =>
      mayDo("viewer") ? (await unwrap(api.GET("/v1/stats"))).since_start.is_audit_failing : total(await readSamples(), "weir_audit_failing") > 0,
    refetchInterval: LIST_MS,
    retry: false,
  });

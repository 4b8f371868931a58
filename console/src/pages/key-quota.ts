// The calls that a key allows in a day and in a month.
import type { KeyView } from "../api/shapes";

const CALLS_MAX = 2 ** 32 - 1;

interface TypedQuota {
  /** Undefined: the gateway's own quota applies. */
  calls?: number;
  fault?: string;
}

/** Parses the typed text. Thousands may be separated by commas and spaces. */
export function readQuota(text: string): TypedQuota {
  const digits = text.replace(/[\s,]/g, "");
  if (digits === "") return {};
  const calls = /^\d+$/.test(digits) ? Number(digits) : NaN;
  if (Number.isNaN(calls)) return { fault: "is a whole number of calls" };
  if (calls === 0) return { fault: "0 is not a quota: leave it empty, or make no key" };
  return calls > CALLS_MAX ? { fault: `is at most ${CALLS_MAX.toLocaleString("en")}` } : { calls };
}

export function quotaWords({ quota_day: day, quota_month: month }: Partial<KeyView["limits"]>): string[] {
  const words = (calls: number | null | undefined, time: string) => (calls == null ? [] : [`${calls.toLocaleString("en")} a ${time}`]);
  return [...words(day, "day"), ...words(month, "month")];
}

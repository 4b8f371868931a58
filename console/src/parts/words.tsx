// Small words with a colour, times, and texts to copy.
import { useState, type ReactNode } from "react";
import type { ChangeClass, Json } from "../api/shapes";
import type { Role } from "../session";
import { Action } from "./action";

export type Tone = "bad" | "warn" | "good" | "accent" | "";

export function Badge({ tone = "", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** The role, and in addition that of approving where the role does not include it. */
export function RoleBadges({ role, approves }: { role?: Role; approves?: boolean }) {
  const isBeside = approves && role !== "approver" && role !== "operator";
  return (
    <>
      <Badge tone="accent">{role}</Badge>
      {isBeside && <Badge tone="accent">approver</Badge>}
    </>
  );
}

const CLASS_TONES: Record<ChangeClass, Tone> = {
  breaking: "bad",
  undecided: "bad",
  review: "warn",
  compatible: "good",
  cosmetic: "",
  identical: "",
  first: "accent",
};

export const toneOfClass = (name: ChangeClass): Tone => CLASS_TONES[name] ?? "";

export function ClassBadge({ name }: { name: ChangeClass }) {
  return <Badge tone={toneOfClass(name)}>{name}</Badge>;
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60_000, "second"],
  [3_600_000, "minute"],
  [86_400_000, "hour"],
  // Keys expire in 90 days, which months cannot express.
  [120 * 86_400_000, "day"],
  [31_536_000_000, "month"],
  [Infinity, "year"],
];
const SIZES: Record<string, number> = {
  second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000, month: 2_592_000_000, year: 31_536_000_000,
};
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function relativeTime(ms: number, now: number): string {
  const distance = ms - now;
  const unit = STEPS.find(([below]) => Math.abs(distance) < below)?.[1] ?? "year";
  const amount = distance / (SIZES[unit] ?? 1);
  // A key that was made a moment ago expires in 90 days, and not in 89.
  return relative.format(amount > 1 ? Math.round(amount) : Math.trunc(amount), unit);
}

/** `2026-11-28 02:32:50 UTC`, the same form everywhere. */
export const utcTime = (ms: number) => (Number.isFinite(ms) ? `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC` : "");

/** `2026-11-28`. */
export const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

export function Time({ ms }: { ms: number | null | undefined }) {
  if (ms == null) return <span className="soft">never</span>;
  const date = new Date(ms);
  return (
    <time dateTime={date.toISOString()} title={utcTime(ms)}>
      {relativeTime(ms, Date.now())}
    </time>
  );
}

/** A time that something took: `850 µs`, `1.2 ms`, `45 ms`, `2.0 s`. */
export function duration(ms: number | null | undefined): string {
  if (ms == null) return "–";
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** `1.5 MB`. */
export const megabytes = (bytes: number) => `${(bytes / 1_000_000).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;

export function pretty(value: Json | undefined): string {
  return JSON.stringify(value, null, 2) ?? "";
}

export function CopyAction({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      // A page of plain HTTP on another machine has no clipboard.
      setState("failed");
    }
    setTimeout(setState, 2000, "");
  };
  return (
    <Action kind="compact" onPress={() => void copy()}>
      {state === "copied" ? "Copied" : state === "failed" ? "Select it and copy" : label}
    </Action>
  );
}

export function CodeBlock({ text, wraps, label }: { text: string; wraps?: boolean; label: string }) {
  return (
    <div className={`code has-copy ${wraps ? "wraps" : ""}`}>
      <pre tabIndex={0} role="group" aria-label={label}>{text}</pre>
      <div className="copy">
        <CopyAction text={text} />
      </div>
    </div>
  );
}

/** The first digits of a digest. All of them are in the title. */
export function Digest({ text }: { text: string }) {
  return <code title={text}>{text.slice(0, 12)}</code>;
}

export function count(amount: number, one: string, many = `${one}s`): string {
  return `${amount.toLocaleString("en")} ${amount === 1 ? one : many}`;
}

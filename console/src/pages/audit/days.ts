// The days between which records are looked for.

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

/** The day of a time in the address; empty where it is a distance, such as `2h`. */
export const dayOf = (time: string): string => (DAY.test(time.slice(0, 10)) ? time.slice(0, 10) : "");

/** The first moment after the day, as the gateway reads `until`. */
export function dayAfter(day: string): string | undefined {
  const ms = DAY.test(day) ? Date.parse(day) : Number.NaN;
  return Number.isNaN(ms) ? undefined : new Date(ms + DAY_MS).toISOString().slice(0, 10);
}

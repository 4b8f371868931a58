// What is typed is sent when no key came for a while.

/** The time without a keystroke after which the typed text is sent. */
export const SETTLE_MS = 150;

/** Resolves after a time; rejects where the signal ends the wait. */
export function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

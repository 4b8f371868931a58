// Work that may fail: whether it runs, and why it did not succeed.
import { useState } from "react";

export function useAttempt() {
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const attempt = async (work: () => Promise<void>) => {
    setPending(true);
    setError(null);
    try {
      await work();
    } catch (caught) {
      setError(caught);
    }
    setPending(false);
  };
  return { error, setError, isPending, attempt };
}

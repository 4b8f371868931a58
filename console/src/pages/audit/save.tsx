// Saves what the trail gives as a file.
import { useState } from "react";
import { Action } from "../../parts/action";
import { Overlay } from "../../parts/overlay";
import { ProblemNote } from "../../parts/states";

interface SaveProps {
  title: string;
  file: string;
  read: () => Promise<Blob>;
  isCompact?: boolean;
}

export function SaveAction({ title, file, read, isCompact }: SaveProps) {
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const save = async () => {
    setPending(true);
    setError(null);
    try {
      const address = URL.createObjectURL(await read());
      Object.assign(document.createElement("a"), { href: address, download: file }).click();
      URL.revokeObjectURL(address);
    } catch (caught) {
      setError(caught);
    }
    setPending(false);
  };
  return (
    <>
      <Action kind={isCompact ? "compact" : undefined} onPress={() => void save()} isPending={isPending}>
        {title}
      </Action>
      <Overlay title={title} kind="dialog" isOpen={error !== null} onClose={() => setError(null)}>
        {error != null && <ProblemNote error={error} retry={() => void save()} />}
      </Overlay>
    </>
  );
}

// Saves records of the trail as a file.
import { useAttempt } from "../../parts/attempt";
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
  const { error, setError, isPending, attempt } = useAttempt();
  const save = async () => {
    await attempt(async () => {
      const address = URL.createObjectURL(await read());
      Object.assign(document.createElement("a"), { href: address, download: file }).click();
      URL.revokeObjectURL(address);
    });
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

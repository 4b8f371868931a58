// A file of this machine that is put into the gateway, chosen or dropped, with how far it is.
import { useRef, useState } from "react";
import { mayDo, type Role } from "../session";
import { GuardedAction } from "./action";
import { ProblemNote } from "./states";

interface UploadProps {
  label: string;
  /** The text of the box, and what happens with the file. */
  title?: string;
  help?: string;
  /** A box on which files are dropped, instead of only a button. */
  isBox?: boolean;
  needs: Role;
  /** The endings of files that may be chosen, such as `.wasm`. */
  accept: string;
  /** Puts the file where it belongs. */
  send: (file: File, progress: (part: number) => void) => Promise<unknown>;
  /** What is shown of a file while the gateway has it, and afterwards. */
  words: { waiting: string; done: string };
  onDone: (file: File) => void;
  kind?: "main" | "";
}

export function FileUpload({ label, title, help, isBox = false, needs, accept, send, words, onDone, kind = "" }: UploadProps) {
  const input = useRef<HTMLInputElement>(null);
  const [state, setState] = useState<{ file: string; part: number; isDone: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isOver, setOver] = useState(false);
  const isRunning = state !== null && !state.isDone;
  const put = async (file: File | undefined) => {
    if (!file || isRunning || !mayDo(needs)) return;
    setError(null);
    setState({ file: file.name, part: 0, isDone: false });
    try {
      await send(file, (part) => setState({ file: file.name, part, isDone: false }));
      setState({ file: file.name, part: 1, isDone: true });
      onDone(file);
    } catch (caught) {
      setState(null);
      setError(caught);
    }
  };
  return (
    <section
      className={isBox ? `file-start ${isOver ? "over" : ""}` : "stack tight"}
      aria-label={title ?? label}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void put(event.dataTransfer.files[0]);
      }}
    >
      {title && <strong>{title}</strong>}
      {help && <p className="soft small">{help}</p>}
      <div className="row">
        <GuardedAction needs={needs} kind={kind} isPending={isRunning} onPress={() => input.current?.click()}>
          {label}
        </GuardedAction>
        <input
          ref={input}
          type="file"
          accept={accept}
          hidden
          aria-label={label}
          onChange={({ target }) => {
            const file = target.files?.[0];
            void put(file);
            // The same file is a change again when it is chosen again.
            target.value = "";
          }}
        />
        {state && (
          <span className="row" role="status">
            {isRunning && <progress value={state.part} max={1} aria-label={`Sent of ${state.file}`} />}
            {state.isDone ? `${state.file} ${words.done}` : state.part < 1 ? `${state.file}: ${Math.round(state.part * 100)} %` : `${state.file} ${words.waiting}`}
          </span>
        )}
      </div>
      {error != null && <ProblemNote error={error} />}
    </section>
  );
}

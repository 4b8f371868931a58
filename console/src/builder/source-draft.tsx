// Drafts a contract over the source that another page chose: the address names its connection and itself.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { draftSource } from "../api/sources";
import { setAddressValues, useAddressValue } from "../location";
import { Action } from "../parts/action";
import { ProblemNote } from "../parts/states";
import { mayDo } from "../session";
import { useBuilder } from "./context";

/** `isUntouched`: there is no work that the draft would replace. */
export function SourceDraft({ isUntouched }: { isUntouched: boolean }) {
  const [connection] = useAddressValue("connection");
  const [source] = useAddressValue("source");
  const { replaceText } = useBuilder();
  const isWanted = connection !== "" && source !== "";
  const drafted = useQuery({
    queryKey: ["drafted", connection, source],
    queryFn: () => draftSource(connection, source),
    enabled: isWanted && mayDo("editor"),
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
  });
  const { data } = drafted;
  const forget = () => setAddressValues({ connection: "", source: "" });
  const take = () => {
    if (!data) return;
    replaceText(data.source, data.notes);
    forget();
  };
  useEffect(() => {
    if (isUntouched) take();
    // A change of the text that the draft replaces is not a reason to take the draft again.
  }, [data]);
  if (!isWanted) return null;
  if (!mayDo("editor")) return <p className="note warn">A draft of {source} needs the role editor.</p>;
  if (drafted.error) return <ProblemNote error={drafted.error} retry={() => void drafted.refetch()} />;
  if (!data) return <p role="status">{source} is being looked at…</p>;
  return (
    <div className="note warn stack tight" role="status">
      <p>
        Another contract that was not submitted is here. The draft over <code>{source}</code> takes its place; <em>Undo</em> brings it back.
      </p>
      <div className="row">
        <Action kind="main" onPress={take}>
          Take the draft
        </Action>
        <Action onPress={forget}>Keep what is here</Action>
      </div>
    </div>
  );
}

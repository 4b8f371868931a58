import { useEffect, useState, type FormEvent } from "react";
import icon from "../icon.svg";
import { findIssuer, goToIssuer } from "../issuer-sign-in";
import { Action } from "../parts/action";
import { TextField } from "../parts/fields";
import { ProblemNote } from "../parts/states";
import { signIn, useEnding } from "../session";

export function SignInPage() {
  const ending = useEnding();
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const [issuer, setIssuer] = useState<string | null>(null);
  useEffect(() => {
    void findIssuer().then(setIssuer);
  }, []);
  const leave = async () => {
    setPending(true);
    setError(null);
    try {
      await goToIssuer();
    } catch (caught) {
      setError(caught);
      setPending(false);
    }
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setPending(true);
    setError(null);
    try {
      await signIn(key);
    } catch (caught) {
      setError(caught);
      setPending(false);
    }
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <div className="brand">
          <img src={icon} alt="" />
          <h1>Weir</h1>
        </div>
        <p className="soft">
          Sign in to {location.host}
          {issuer === null && " with an admin key"}.
        </p>
        {ending && !error && <div className="note warn">{ending}</div>}
        {error != null && <ProblemNote error={error} />}
        {issuer !== null && (
          <>
            <Action kind="main" isPending={isPending} onPress={() => void leave()}>
              Sign in with {hostOf(issuer)}
            </Action>
            <p className="soft small">Or with an admin key:</p>
          </>
        )}
        <TextField
          label="Admin key"
          type="password"
          value={key}
          onChange={setKey}
          placeholder="weiradm_…"
          required
          help={
            <>
              The first key is in <code>admin.token</code> of the state folder. Others are made with{" "}
              <code>weir admins create</code>, and <code>weir admins link</code> prints a link that signs in. The key is not kept: a session of 12 hours takes its place.
            </>
          }
        />
        <Action kind={issuer === null ? "main" : ""} type="submit" isPending={isPending} isDisabled={key.trim() === ""}>
          Sign in
        </Action>
      </form>
    </main>
  );
}

const hostOf = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

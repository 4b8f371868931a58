// The accounts that callers have connected at a server, and their end.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../../api/client";
import { useAccounts } from "../../api/queries";
import type { AccountView } from "../../api/shapes";
import { useAttempt } from "../../parts/attempt";
import { Action, GuardedAction, RoleNote } from "../../parts/action";
import { Overlay } from "../../parts/overlay";
import { Loaded, ProblemNote } from "../../parts/states";
import { DataTable } from "../../parts/table";
import { Time } from "../../parts/words";
import { mayDo } from "../../session";
import { disconnectEffect } from "./owner";

export function ServerAccounts({ server }: { server: string }) {
  const accounts = useAccounts(server);
  const [ending, setEnding] = useState<AccountView | null>(null);
  return (
    <section className="stack tight" aria-label="Accounts">
      <h3>Accounts</h3>
      {mayDo("operator") ? (
        <Loaded query={accounts} lines={2}>
          {(all) => (all.length === 0 ? <NoAccount server={server} /> : <AccountTable accounts={all} onEnd={setEnding} />)}
        </Loaded>
      ) : (
        <p className="row">
          The accounts that callers have connected here are listed and ended by operators. <RoleNote needs="operator" />
        </p>
      )}
      {ending && <Disconnect account={ending} onClose={() => setEnding(null)} />}
    </section>
  );
}

function NoAccount({ server }: { server: string }) {
  return (
    <div className="note stack tight">
      <strong>No account is connected</strong>
      <p>
        Where the entry of this server in <code>weir.toml</code> has <code>auth.kind = "oauth"</code>, the first call of each caller answers with a link. The person
        who opens it signs in at the server's issuer, and the account is listed here.
      </p>
      <p className="soft small">
        The gateway's own account, with which it looks at the lists, is connected by <code>weir upstream connect {server}</code>.
      </p>
    </div>
  );
}

function AccountTable({ accounts, onEnd }: { accounts: AccountView[]; onEnd: (account: AccountView) => void }) {
  return (
    <DataTable
      label="Accounts"
      rows={accounts}
      rowKey={({ number }) => String(number)}
      columns={[
        { head: "Owner", lead: true, cell: (account) => <strong>{account.owner}</strong> },
        { head: "Signed in at", cell: (account) => <code>{account.issuer}</code> },
        { head: "Connected", cell: (account) => <Time ms={account.created_ms} /> },
        { head: "Renewed", cell: (account) => <Time ms={account.renewed_ms} /> },
        {
          head: "",
          cell: (account) => (
            <Action kind="compact" label={`Disconnect the account of ${account.owner}`} onPress={() => onEnd(account)}>
              Disconnect
            </Action>
          ),
        },
      ]}
    />
  );
}

function Disconnect({ account, onClose }: { account: AccountView; onClose: () => void }) {
  const client = useQueryClient();
  const { error, isPending, attempt } = useAttempt();
  const disconnect = async () => {
    await attempt(async () => {
      const path = { name: account.upstream, number: account.number };
      await unwrap(api.DELETE("/v1/upstreams/{name}/accounts/{number}", { params: { path } }));
      onClose();
    });
    await client.invalidateQueries({ queryKey: ["accounts", account.upstream] });
  };
  return (
    <Overlay title={`Disconnect the account of ${account.owner}?`} kind="dialog" isOpen onClose={onClose}>
      <p>{disconnectEffect(account.owner, account.upstream)}</p>
      {error != null && <ProblemNote error={error} />}
      <div className="row">
        <GuardedAction needs="operator" kind="danger" isPending={isPending} onPress={() => void disconnect()}>
          Disconnect
        </GuardedAction>
        <Action onPress={onClose}>Keep it</Action>
      </div>
    </Overlay>
  );
}

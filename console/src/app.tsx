// The pages, by address.
import { lazy, Suspense, type ComponentType } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { OverviewPage } from "./pages/overview";
import { PageBoundary } from "./parts/boundary";
import { PageHead } from "./parts/page";
import { Empty, Skeleton } from "./parts/states";
import { mayApprove, mayDo, useSession } from "./session";
import { Shell } from "./shell";

/** A page that is loaded when it is opened first. */
function later<Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) {
  return lazy(async () => ({ default: (await load())[name] }));
}

const SignInPage = later(() => import("./pages/sign-in"), "SignInPage");
const ContractPage = lazy(async () => ({ default: (await import("./pages/contract")).ContractPage }));
const ContractsPage = later(() => import("./pages/contracts"), "ContractsPage");
const ToolsPage = later(() => import("./pages/tools"), "ToolsPage");
const DraftsPage = later(() => import("./pages/drafts"), "DraftsPage");
const BuilderPage = later(() => import("./pages/builder"), "BuilderPage");
const TryPage = later(() => import("./pages/try"), "TryPage");
const KeysPage = later(() => import("./pages/keys"), "KeysPage");
const ApprovalsPage = later(() => import("./pages/approvals"), "ApprovalsPage");
const AuditPage = later(() => import("./pages/audit"), "AuditPage");
const ServersPage = later(() => import("./pages/servers"), "ServersPage");
const PluginsPage = later(() => import("./pages/plugins"), "PluginsPage");
const SettingsPage = later(() => import("./pages/settings"), "SettingsPage");

function Unknown() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty title="Nothing has this address">
        <p>
          <Link href="/contracts">See the contracts</Link>, or choose a page at the side.
        </p>
      </Empty>
    </>
  );
}

const NARROW_PAGES = [
  { address: "/approvals", Page: ApprovalsPage, name: "See the writes that wait", isAllowed: mayApprove },
  { address: "/audit", Page: AuditPage, name: "See the audit trail", isAllowed: () => mayDo("auditor") },
];

/** An auditor reads the trail, and an approver the writes that wait: other pages would request what the gateway refuses. */
function NarrowPages() {
  const [path] = useLocation();
  const pages = NARROW_PAGES.filter(({ isAllowed }) => isAllowed());
  const here = path === "/" ? pages[0] : pages.find(({ address }) => address === path);
  if (here) return <here.Page />;
  return (
    <>
      <PageHead title="Not for your role" />
      <Empty title="A viewer may read this page">
        {pages.map(({ address, name }) => (
          <p key={address}>
            <Link href={address}>{name}</Link>, or sign in with another key.
          </p>
        ))}
      </Empty>
    </>
  );
}

export function App() {
  const session = useSession();
  const [path] = useLocation();
  if (!session) {
    return (
      <PageBoundary>
        <Suspense>
          <SignInPage />
        </Suspense>
      </PageBoundary>
    );
  }
  return (
    // A page's state belongs to one session: another admin starts afresh.
    <Shell key={session.token}>
      <PageBoundary key={path}>
        <Suspense fallback={<Skeleton lines={8} />}>
          <Switch>
            {!mayDo("viewer") && <Route component={NarrowPages} />}
            <Route path="/" component={OverviewPage} />
            <Route path="/contracts" component={ContractsPage} />
            <Route path="/contracts/:name">{({ name }) => <ContractPage key={name} name={decodeURIComponent(name)} />}</Route>
            <Route path="/tools" component={ToolsPage} />
            <Route path="/drafts" component={DraftsPage} />
            <Route path="/approvals" component={ApprovalsPage} />
            <Route path="/builder" component={BuilderPage} />
            <Route path="/try" component={TryPage} />
            <Route path="/keys" component={KeysPage} />
            <Route path="/audit" component={AuditPage} />
            <Route path="/servers" component={ServersPage} />
            <Route path="/plugins" component={PluginsPage} />
            <Route path="/settings" component={SettingsPage} />
            <Route component={Unknown} />
          </Switch>
        </Suspense>
      </PageBoundary>
    </Shell>
  );
}

// What is around every page: navigation, who is signed in, what waits for a review, and the search over everything.
import { useEffect, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useContracts, useDrafts, usePlans } from "./api/queries";
import icon from "./icon.svg";
import { useLiveEvents } from "./live";
import { Action } from "./parts/action";
import type { Overlay } from "./parts/overlay";
import type { SearchPalette } from "./parts/palette";
import { Badge, count, RoleBadges } from "./parts/words";
import { readablePlaces } from "./places";
import { SEARCH_KEYS } from "./platform";
import { leaveTabs, useSession } from "./session";
import { applyTheme, currentTheme, type Theme } from "./theme";

/** The dialogs around every page. */
interface ShellDialogs {
  Overlay: typeof Overlay;
  SearchPalette: typeof SearchPalette;
}

/** The time after which dialogs are loaded where a browser does not report that it is idle. */
const IDLE_MS = 1_000;

/** The first screen has no dialogs. They are loaded while the browser is idle, so that what is typed after `Ctrl K` goes into the search. */
function useDialogs(): ShellDialogs | null {
  const [dialogs, setDialogs] = useState<ShellDialogs | null>(null);
  useEffect(() => {
    const load = async () => {
      const [{ Overlay }, { SearchPalette }] = await Promise.all([import("./parts/overlay"), import("./parts/palette")]);
      setDialogs({ Overlay, SearchPalette });
    };
    if ("requestIdleCallback" in globalThis) requestIdleCallback(() => void load());
    else setTimeout(() => void load(), IDLE_MS);
  }, []);
  return dialogs;
}

function Brand() {
  return (
    <Link href="/" className="brand">
      <img src={icon} alt="" />
      Weir
    </Link>
  );
}

function Places({ pending, onChoose }: { pending: number; onChoose?: () => void }) {
  const plans = usePlans();
  const waiting = (plans.data ?? []).filter(({ status, is_expired }) => status === "pending" && !is_expired).length;
  const [path] = useLocation();
  const isHere = (href: string) => (href === "/" ? path === "/" : path === href || path.startsWith(`${href}/`));
  return (
    <nav className="places" aria-label="Pages">
      {readablePlaces().map(({ href, title, group }) => (
        <div key={href}>
          {group && <div className="group">{group}</div>}
          <Link href={href} aria-current={isHere(href) ? "page" : undefined} onClick={onChoose}>
            {title}
            {href === "/drafts" && pending > 0 && <Badge tone="warn">{pending}</Badge>}
            {href === "/approvals" && waiting > 0 && <Badge tone="warn">{waiting}</Badge>}
          </Link>
        </div>
      ))}
    </nav>
  );
}

function Who() {
  const session = useSession();
  const [theme, setTheme] = useState<Theme>(currentTheme);
  const choose = (next: Theme) => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <div className="who">
      <div>
        {session?.name && <strong>{session.name} </strong>}
        <RoleBadges role={session?.role} approves={session?.approves} />
        <div className="soft">{location.host}</div>
      </div>
      <label className="stack tight">
        <span className="hidden-text">Colours</span>
        <select value={theme} onChange={(event) => choose(event.target.value as Theme)}>
          <option value="system">System colours</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <Action kind="compact" onPress={leaveTabs}>
        Sign out
      </Action>
    </div>
  );
}

/** What everybody should see on every page. */
function Banner({ breaking, refused }: { breaking: number; refused: number }) {
  if (breaking === 0 && refused === 0) return null;
  return (
    <div className={`banner ${refused > 0 ? "bad" : ""}`} role="status">
      {breaking > 0 && (
        <Link href="/drafts">
          {count(breaking, "change")} would break callers and {breaking === 1 ? "waits" : "wait"} for an operator
        </Link>
      )}
      {breaking > 0 && refused > 0 && " · "}
      {refused > 0 && <Link href="/contracts">{count(refused, "file is", "files are")} refused</Link>}
    </div>
  );
}

export function Shell({ children }: { children: ReactNode }) {
  useLiveEvents();
  const drafts = useDrafts();
  const contracts = useContracts();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const dialogs = useDialogs();
  const pending = drafts.data ?? [];
  const breaking = pending.filter((draft) => draft.class === "breaking" || draft.class === "undecided");
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const search = (
    <Action onPress={() => setSearching(true)}>
      Search <span className="soft small">{SEARCH_KEYS}</span>
    </Action>
  );
  return (
    <div className="shell">
      <a className="skip button" href="#content" onClick={focusContent}>
        To the content
      </a>
      <aside className="side" aria-label="Weir">
        <Brand />
        {search}
        <Places pending={pending.length} />
        <Who />
      </aside>
      <header className="bar">
        <Brand />
        <div className="row">
          {search}
          <Action onPress={() => setMenuOpen(true)}>Menu</Action>
        </div>
      </header>
      {dialogs && (
        <>
          <dialogs.Overlay title="Pages" kind="narrow" isOpen={isMenuOpen} onClose={() => setMenuOpen(false)}>
            <Places pending={pending.length} onChoose={() => setMenuOpen(false)} />
            <Who />
          </dialogs.Overlay>
          <dialogs.SearchPalette isOpen={isSearching} onClose={() => setSearching(false)} />
        </>
      )}
      <div>
        <Banner breaking={breaking.length} refused={contracts.data?.refused.length ?? 0} />
        <main className="content" id="content" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}

/** The fragment is the page's address, so that the link may not go there itself. */
function focusContent(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

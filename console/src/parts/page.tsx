// The head of a page.
import { useEffect, type ReactNode } from "react";

export function PageHead({ title, children, actions }: { title: string; children?: ReactNode; actions?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Weir`;
  }, [title]);
  return (
    <header className="page-head">
      <div className="stack tight">
        <h1>{title}</h1>
        {children && <p>{children}</p>}
      </div>
      {actions && <div className="row">{actions}</div>}
    </header>
  );
}

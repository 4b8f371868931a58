import type { MouseEvent, ReactNode } from "react";

type Kind = "main" | "danger" | "plain" | "compact" | "plain compact" | "";

export interface ActionProps {
  children: ReactNode;
  onPress?: () => void;
  kind?: Kind;
  isDisabled?: boolean;
  isPending?: boolean;
  type?: "button" | "submit";
  label?: string;
  describedBy?: string;
}

/** A button of the browser: every page has some, and the library's own would be half of what the first page loads. */
export function Action({ children, onPress, kind = "", isDisabled, isPending, type = "button", label, describedBy }: ActionProps) {
  const press = (event: MouseEvent) => {
    // It keeps the focus while it works, and takes no press.
    if (isPending) event.preventDefault();
    else onPress?.();
  };
  return (
    <button
      type={type}
      className={`button ${kind}`}
      onClick={press}
      disabled={isDisabled}
      aria-disabled={isPending || undefined}
      aria-label={label}
      aria-describedby={describedBy}
    >
      {isPending ? <>{children}…</> : children}
    </button>
  );
}

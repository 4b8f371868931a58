import type { ReactNode } from "react";
import { Button } from "react-aria-components";

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

export function Action({ children, onPress, kind = "", isDisabled, isPending, type, label, describedBy }: ActionProps) {
  return (
    <Button
      className={`button ${kind}`}
      onPress={onPress}
      isDisabled={isDisabled}
      // It keeps the focus while it works, and takes no press.
      isPending={isPending}
      type={type}
      aria-label={label}
      aria-describedby={describedBy}
    >
      {isPending ? <>{children}…</> : children}
    </Button>
  );
}

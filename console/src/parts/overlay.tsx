// Drawers and dialogs. Both close with Escape and give the focus back.
import type { ReactNode } from "react";
import { Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Action } from "./action";

interface OverlayProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  kind?: "drawer" | "narrow" | "dialog";
  aside?: ReactNode;
}

export function Overlay({ title, isOpen, onClose, children, kind = "drawer", aside }: OverlayProps) {
  const names = { drawer: "drawer", narrow: "drawer narrow", dialog: "dialog" };
  return (
    <ModalOverlay
      className={`veil ${kind === "dialog" ? "middle" : ""}`}
      isOpen={isOpen}
      onOpenChange={(open) => !open && onClose()}
      isDismissable
    >
      <Modal className={names[kind]}>
        <Dialog>
          <div className="drawer-head">
            <div className="stack tight">
              <Heading slot="title" level={2}>
                {title}
              </Heading>
              {aside}
            </div>
            <Action kind="compact" onPress={onClose}>
              Close
            </Action>
          </div>
          {children}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

// Search over pages, contracts and tools, by keyboard.
import { Autocomplete, Dialog, Input, Label, ListBox, ListBoxItem, Modal, ModalOverlay, SearchField, useFilter } from "react-aria-components";
import { useContracts } from "../api/queries";
import { navigate } from "../location";
import { readablePlaces } from "../places";

interface Target {
  id: string;
  name: string;
  kind: string;
}

export function SearchPalette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { contains } = useFilter({ sensitivity: "base" });
  const contracts = useContracts();
  const targets: Target[] = [
    ...readablePlaces().map(({ href, title }) => ({ id: href, name: title, kind: "page" })),
    ...(contracts.data?.contracts ?? []).flatMap(({ name, tools }) => [
      { id: `/contracts/${encodeURIComponent(name)}`, name, kind: "contract" },
      ...tools.map((tool) => ({ id: `/tools?tool=${encodeURIComponent(tool)}`, name: tool, kind: "tool" })),
    ]),
  ];
  const go = (address: string) => {
    onClose();
    navigate(address);
  };
  return (
    <ModalOverlay className="veil middle" isOpen={isOpen} onOpenChange={(open) => !open && onClose()} isDismissable>
      <Modal className="dialog">
        <Dialog aria-label="Search">
          <div className="palette">
            <Autocomplete filter={contains}>
              <SearchField autoFocus className="field">
                <Label>Go to a page, contract or tool</Label>
                <Input />
              </SearchField>
              <ListBox
                aria-label="Results"
                items={targets}
                onAction={(key) => go(String(key))}
                renderEmptyState={() => <p className="soft">Nothing has such a name.</p>}
              >
                {(target) => (
                  <ListBoxItem id={target.id} textValue={target.name}>
                    <span>{target.name}</span>
                    <span className="soft small">{target.kind}</span>
                  </ListBoxItem>
                )}
              </ListBox>
            </Autocomplete>
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

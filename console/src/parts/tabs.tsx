// Tabs of a page, which are in its address.
import { useEffect, useRef, type ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { useAddressValue } from "../location";

export interface PageTab {
  id: string;
  title: ReactNode;
  content: () => ReactNode;
}

/** The first tab is the one of an address without a tab. */
export function PageTabs({ tabs, label }: { tabs: PageTab[]; label: string }) {
  const [chosen, choose] = useAddressValue("tab");
  const first = tabs[0]?.id ?? "";
  const selected = tabs.some((tab) => tab.id === chosen) ? chosen : first;
  const list = useRef<HTMLDivElement>(null);
  // On a narrow page the tab of an address may be out of sight.
  useEffect(() => {
    list.current?.querySelector("[data-selected]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected]);
  return (
    <Tabs
      selectedKey={selected}
      onSelectionChange={(key) => choose(key === first ? "" : String(key), { push: true })}
      keyboardActivation="manual"
    >
      <TabList aria-label={label} className="tabs" ref={list}>
        {tabs.map((tab) => (
          <Tab key={tab.id} id={tab.id}>
            {tab.title}
          </Tab>
        ))}
      </TabList>
      {tabs.map((tab) => (
        <TabPanel key={tab.id} id={tab.id}>
          {tab.content()}
        </TabPanel>
      ))}
    </Tabs>
  );
}

import { expect, test } from "vitest";
import { servedVersions } from "./served-versions";

test("an agent is pinned to what is served", () => {
  const contracts = [
    { name: "desk", version: "3.1.0" },
    { name: "retired", version: null },
  ];
  const kept = [
    { contract: "desk", version: "1.4.0", has_ended: true },
    { contract: "desk", version: "2.0.0", has_ended: false },
    { contract: "other", version: "1.0.0", has_ended: false },
  ];
  expect(servedVersions(contracts, kept)).toEqual([
    { value: "desk@2", text: "desk 2.0.0" },
    { value: "desk@3", text: "desk 3.1.0, live" },
  ]);
});

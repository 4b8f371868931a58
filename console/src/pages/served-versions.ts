// The major versions to which an agent can be pinned.
import type { ContractView, KeptView } from "../api/shapes";

interface VersionOption {
  /** Such as `support@1`. */
  value: string;
  text: string;
}

type LiveVersion = Pick<ContractView, "name" | "version">;
type KeptVersion = Pick<KeptView, "contract" | "version" | "has_ended">;

/** The live versions and the kept ones that have not ended, by contract. */
export function servedVersions(contracts: LiveVersion[], kept: KeptVersion[]): VersionOption[] {
  return contracts.flatMap(({ name, version }) => {
    if (!version) return [];
    const beside = kept.filter((one) => one.contract === name && !one.has_ended).map((one) => one.version);
    return [...beside, version].map((served) => ({
      value: `${name}@${served.split(".")[0]}`,
      text: `${name} ${served}${served === version ? ", live" : ""}`,
    }));
  });
}

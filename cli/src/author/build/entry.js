// Made by `weir plugin build`: reports which export is missing, which no call could.
import * as plugin from "../../plugin.js";
export * from "../../plugin.js";

for (const [name, functions] of Object.entries(EXPORTS)) {
  if (plugin[name] === undefined) throw new Error(`plugin.js does not export \`${name}\`: write \`EXAMPLE\``);
  const missing = functions.filter((each) => typeof plugin[name][each] !== "function");
  if (missing.length > 0) throw new Error(`\`${name}\`, which plugin.js exports, has no function \`${missing.join("`, `")}\``);
}

// @ts-check
import { map, plugin, text, tool } from "./sdk/weir.js";

const deploy = tool({
  name: "deploy",
  description: "Deploy a service to an environment, and return what was deployed.",
  idempotent: true,
  parameters: {
    environment: text({ minLength: 1, description: "Target environment" }),
    service: text({ minLength: 1, description: "Service name." }),
    version: text({ default: "latest", description: "Version or image tag." }),
  },
  returns: map(text()),
  run({ environment, service, version }, context) {
    context.log(`Deploying ${service}`);
    return { environment, service, version };
  },
});

export const { about, tools } = plugin({ name: "{{name}}", version: "0.1.0", tools: [deploy] });

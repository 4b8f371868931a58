"""Tools: each function with `@tool` above it is one. Its type hints and its docstring are what agents read."""

from typing import Annotated

from weir_plugin import Context, Description, MinLen, plugin, tool


@tool(idempotent=True)
def deploy(
    environment: Annotated[str, MinLen(1), Description("Target environment")],
    service: Annotated[str, MinLen(1)],
    version: str = "latest",
    ctx: Context = None,
) -> dict[str, str]:
    """Deploy a service to an environment, and return what was deployed.

    Args:
        service: Service name.
        version: Version or image tag.
    """
    ctx.log(f"Deploying {service}")
    return {"environment": environment, "service": service, "version": version}


About, Tools = plugin("{{name}}", "0.1.0", deploy)

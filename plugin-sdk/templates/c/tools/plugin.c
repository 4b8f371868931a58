/* Tools: each row of TOOLS is one. Its parameters and its description are what agents read. */
#include "sdk/weir.h"

static const weir_parameter DEPLOY[] = {
    {.name = "environment", .min_length = 1, .description = "Target environment"},
    {.name = "service", .min_length = 1, .description = "Service name."},
    {.name = "version", .default_json = "\"latest\"", .description = "Version or image tag."},
    {0},
};

static bool deploy(weir_call *call) {
    weir_log("info", "Deploying");
    weir_print(call, "{\"environment\":");
    weir_print_text(call, weir_text(call, weir_argument(call, "environment")));
    weir_print(call, ",\"service\":");
    weir_print_text(call, weir_text(call, weir_argument(call, "service")));
    weir_print(call, ",\"version\":");
    weir_print_text(call, weir_text(call, weir_argument(call, "version")));
    weir_print(call, "}");
    return true;
}

static const weir_tool TOOLS[] = {
    {.name = "deploy",
     .description = "Deploy a service to an environment, and return what was deployed.",
     .parameters = DEPLOY,
     .returns = WEIR_MAP_OF_TEXTS,
     .idempotent = WEIR_YES,
     .run = deploy},
    {0},
};

const weir_plugin weir_this_plugin = {"{{name}}", "0.1.0", TOOLS};

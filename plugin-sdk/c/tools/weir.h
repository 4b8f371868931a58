/* What a plugin in C includes: a function with a table of its parameters is a tool. */
#ifndef WEIR_H
#define WEIR_H

#include "json.h"

/* ---- declaring ---- */

typedef enum { WEIR_TEXT, WEIR_INTEGER, WEIR_NUMBER, WEIR_BOOLEAN } weir_type;
typedef enum { WEIR_UNSAID, WEIR_YES, WEIR_NO } weir_hint;

/* One parameter. What has neither `default_json` nor `optional` is required. */
typedef struct {
    const char *name;
    weir_type type;
    /* A whole JSON Schema instead of `type` and its bounds, for lists and records. */
    const char *schema;
    const char *description;
    unsigned min_length, max_length; /* texts; 0: not set */
    const char *minimum, *maximum;   /* numbers, as JSON */
    const char *default_json;
    bool optional;
    /* How `weir call` takes it. `alias`: a further flag, such as "-s". */
    bool positional;
    const char *alias, *metavar;
} weir_parameter;

typedef struct weir_call weir_call;

typedef struct {
    const char *name;
    /* Its first paragraph is the title; the rest, or else the first paragraph, the description. Of a paragraph with more than 200
     * characters, the first sentence is the title. */
    const char *description;
    /* Ends with {0}. */
    const weir_parameter *parameters;
    /* The JSON Schema of the answer; NULL: nothing is answered. A value that is printed then is a fault,
       which is logged: a tool that only reads fails, and any other answers without the value. */
    const char *returns;
    weir_hint read_only, destructive, idempotent, open_world;
    /* Whether a call may go on as a task after its request was answered: "optional", or "required", which refuses modern
       clients that know no tasks. NULL: it may not. */
    const char *task;
    /* Which imports the operator is asked for, such as "\"sql\"". */
    const char *requests;
    /* Writes the answer with `weir_print…` and returns true, or returns what `weir_refuse` does. */
    bool (*run)(weir_call *call);
} weir_tool;

#define WEIR_MAP_OF_TEXTS "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"

/* The plugin: one per component, written by its author. `tools` ends with {0}. */
typedef struct {
    const char *name, *version;
    const weir_tool *tools;
} weir_plugin;
extern const weir_plugin weir_this_plugin;

/* ---- arguments ---- */

/* json.h has what reads them. No text holds a 0: a call whose arguments have one in a text is refused before
   the tool runs. */
weir_value weir_argument(weir_call *call, const char *name);
/* Ends with 0 and lives as long as the call; "" if there is no text. */
const char *weir_text(weir_call *call, weir_value value);
/* The call's context and the answers of its caller: JSON objects. */
weir_value weir_context(weir_call *call);
weir_value weir_resumed(weir_call *call);
weir_value weir_settings(weir_call *call);
/* Memory that lives as long as the call. */
void *weir_room(weir_call *call, size_t bytes);

/* ---- answers ---- */

void weir_print(weir_call *call, const char *json);
void weir_print_text(weir_call *call, const char *text); /* as a JSON string, quotes included */
void weir_print_integer(weir_call *call, int64_t number);
void weir_print_number(weir_call *call, double number);
/* MCP content blocks, with or without a value: a JSON array. */
void weir_content(weir_call *call, const char *json);
/* A question for the caller: `requests` is a JSON object, key -> {method, params}; `state` may be NULL. */
bool weir_ask(weir_call *call, const char *requests, const char *state);
/* There is nothing of that kind. */
bool weir_nothing(weir_call *call);
/* Refuses: a reason for programs, a sentence for the caller. `field` may be NULL; 0: no time to wait is given. */
bool weir_refuse(weir_call *call, const char *reason, const char *sentence, const char *field, unsigned retry_after_ms);

/* ---- the outside; sql, http and files are in toolbox.h ---- */

void weir_log(const char *level, const char *message);
void weir_progress(double done, double total, const char *message);
bool weir_is_cancelled(void);
/* Rows as a JSON array of objects. False: the call is refused already, so return false too. */
bool weir_query(weir_call *call, const char *connection, const char *text, const char *parameters, uint32_t limit, weir_value *rows);
bool weir_execute(weir_call *call, const char *connection, const char *text, const char *parameters, uint64_t *changed);

#endif

/* The SDK behind weir.h. */
#include "weir.h"

#include <stdlib.h>
#include <string.h>

#include "toolbox.h"

typedef struct piece {
    struct piece *before;
} piece;

struct weir_call {
    weir_value arguments, context, resumed;
    piece *pieces;
    weir_buffer value;
    char *content, *requests, *state;
    exports_weir_plugin_tools_error_t *error;
};

static char *settings;
/* A caller who listens to the log does not hear a line with these fields. */
static const char LOG_ONLY[] = "{\"weir.log_only\":true}";

static void *get(size_t bytes) {
    void *room = malloc(bytes ? bytes : 1);
    if (!room) __builtin_trap();
    return room;
}

void *weir_room(weir_call *call, size_t bytes) {
    piece *room = get(sizeof(piece) + bytes);
    room->before = call->pieces;
    call->pieces = room;
    return room + 1;
}

const char *weir_text(weir_call *call, weir_value value) {
    if (!weir_is_text(value)) return "";
    char *text = weir_room(call, (size_t)(value.end - value.at) + 1);
    weir_read_text(value, text);
    return text;
}

weir_value weir_argument(weir_call *call, const char *name) { return weir_member(call->arguments, name); }
weir_value weir_context(weir_call *call) { return call->context; }
weir_value weir_resumed(weir_call *call) { return call->resumed; }

weir_value weir_settings(weir_call *call) {
    (void)call;
    const char *text = settings ? settings : "{}";
    return (weir_value){text, text + strlen(text)};
}

/* ---- answers ---- */

void weir_print(weir_call *call, const char *json) { weir_add(&call->value, json); }
void weir_print_text(weir_call *call, const char *text) { weir_add_string(&call->value, text, strlen(text)); }
void weir_print_integer(weir_call *call, int64_t number) { weir_add_integer(&call->value, number); }
void weir_print_number(weir_call *call, double number) { weir_add_number(&call->value, number); }

static char *copy(const char *text) {
    size_t length = strlen(text) + 1;
    return memcpy(get(length), text, length);
}

void weir_content(weir_call *call, const char *json) {
    free(call->content);
    call->content = copy(json);
}

bool weir_ask(weir_call *call, const char *requests, const char *state) {
    char *asked = copy(requests), *kept = state ? copy(state) : NULL;
    free(call->requests);
    free(call->state);
    call->requests = asked;
    call->state = kept;
    return true;
}

/* The error of a call, without what was written to it before. */
static exports_weir_plugin_tools_error_t *emptied(exports_weir_plugin_tools_error_t *error) {
    exports_weir_plugin_tools_error_free(error);
    return memset(error, 0, sizeof *error);
}

static bool fail(exports_weir_plugin_tools_error_t *error, const char *reason, const char *sentence, const char *field, unsigned wait) {
    emptied(error);
    toolbox_string_dup(&error->code, reason);
    toolbox_string_dup(&error->message, sentence);
    error->field.is_some = field != NULL;
    if (field) toolbox_string_dup(&error->field.val, field);
    error->retry_after_ms.is_some = wait != 0;
    error->retry_after_ms.val = wait;
    return false;
}

bool weir_refuse(weir_call *call, const char *reason, const char *sentence, const char *field, unsigned retry_after_ms) {
    return fail(call->error, reason, sentence, field, retry_after_ms);
}

bool weir_nothing(weir_call *call) { return weir_refuse(call, "not_found", "There is nothing of that kind.", NULL, 0); }

/* ---- the outside ---- */

static toolbox_string_t borrowed(const char *text) { return (toolbox_string_t){(uint8_t *)text, strlen(text)}; }

void weir_log(const char *level, const char *message) {
    toolbox_string_t of = borrowed(level), text = borrowed(message);
    weir_plugin_log_write(&of, &text, NULL);
}

void weir_progress(double done, double total, const char *message) {
    toolbox_string_t text = borrowed(message);
    weir_plugin_progress_report(done, total > 0 ? &total : NULL, &text);
}

bool weir_is_cancelled(void) { return weir_plugin_progress_cancelled(); }

static weir_plugin_sql_statement_t statement(const char *connection, const char *text, const char *parameters, uint32_t limit) {
    return (weir_plugin_sql_statement_t){
        .connection = borrowed(connection), .text = borrowed(text), .parameters = borrowed(parameters), .limit = limit};
}

bool weir_query(weir_call *call, const char *connection, const char *text, const char *parameters, uint32_t limit, weir_value *rows) {
    weir_plugin_sql_statement_t asked = statement(connection, text, parameters, limit);
    weir_plugin_sql_rows_t found;
    if (!weir_plugin_sql_query(&asked, &found, emptied(call->error))) return false;
    char *kept = weir_room(call, found.records.len);
    memcpy(kept, found.records.ptr, found.records.len);
    *rows = (weir_value){kept, kept + found.records.len};
    weir_plugin_sql_rows_free(&found);
    return true;
}

bool weir_execute(weir_call *call, const char *connection, const char *text, const char *parameters, uint64_t *changed) {
    weir_plugin_sql_statement_t asked = statement(connection, text, parameters, 1);
    return weir_plugin_sql_execute(&asked, changed, emptied(call->error));
}

/* ---- definitions ---- */

static void member(weir_buffer *to, const char *name, const char *text) {
    weir_add(to, ",\"");
    weir_add(to, name);
    weir_add(to, "\":");
    weir_add_string(to, text, strlen(text));
}

/* Adds a schema without its last brace, and returns what separates it from a further member. */
static const char *opened(weir_buffer *to, const char *schema) {
    const char *end = strrchr(schema, '}');
    size_t length = end ? (size_t)(end - schema) : strlen(schema);
    weir_add_n(to, schema, length);
    bool is_empty = strspn(schema + 1, " \t\r\n") + 1 >= length;
    return is_empty ? "" : ",";
}

static void parameter(weir_buffer *to, const weir_parameter *given) {
    static const char *TYPES[] = {"{\"type\":\"string\"}", "{\"type\":\"integer\"}", "{\"type\":\"number\"}",
                                  "{\"type\":\"boolean\"}"};
    weir_add_string(to, given->name, strlen(given->name));
    weir_add(to, ":");
    const char *comma = opened(to, given->schema ? given->schema : TYPES[given->type]);
    const struct {
        const char *name;
        unsigned value;
    } lengths[] = {{"\"minLength\":", given->min_length}, {"\"maxLength\":", given->max_length}};
    for (int i = 0; i < 2; i++) {
        if (!lengths[i].value) continue;
        weir_add(to, comma);
        weir_add(to, lengths[i].name);
        weir_add_integer(to, lengths[i].value);
        comma = ",";
    }
    const char *default_json = given->default_json ? given->default_json : given->optional ? "null" : NULL;
    const char *members[][2] = {
        {"\"minimum\":", given->minimum}, {"\"maximum\":", given->maximum}, {"\"default\":", default_json}};
    for (int i = 0; i < 3; i++) {
        if (!members[i][1]) continue;
        weir_add(to, comma);
        weir_add(to, members[i][0]);
        weir_add(to, members[i][1]);
        comma = ",";
    }
    if (given->description) {
        weir_add(to, comma);
        weir_add(to, "\"description\":");
        weir_add_string(to, given->description, strlen(given->description));
    }
    weir_add(to, "}");
}

static void hint(weir_buffer *to, const char **separator, const char *name, weir_hint said) {
    if (said == WEIR_UNSAID) return;
    weir_add(to, *separator);
    weir_add(to, name);
    weir_add(to, said == WEIR_YES ? ":true" : ":false");
    *separator = ",";
}

static void cli(weir_buffer *to, const weir_parameter *parameters) {
    bool any = false;
    for (const weir_parameter *at = parameters; at && at->name; at++) {
        if (!at->positional && !at->alias && !at->metavar) continue;
        weir_add(to, any ? "," : ",\"cli\":{\"parameters\":{");
        any = true;
        weir_add_string(to, at->name, strlen(at->name));
        const char *comma = "";
        weir_add(to, ":{");
        if (at->positional) {
            weir_add(to, "\"positional\":true");
            comma = ",";
        }
        if (at->alias) {
            weir_add(to, comma);
            weir_add(to, "\"aliases\":[");
            weir_add_string(to, at->alias, strlen(at->alias));
            weir_add(to, "]");
            comma = ",";
        }
        if (at->metavar) {
            weir_add(to, comma);
            weir_add(to, "\"metavar\":");
            weir_add_string(to, at->metavar, strlen(at->metavar));
        }
        weir_add(to, "}");
    }
    if (any) weir_add(to, "}}");
}

/* The longest title that the gateway takes, in characters. */
enum { TITLE_MAX = 200 };

static size_t count_characters(const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t at = 0; at < bytes; at++) {
        if (((unsigned char)text[at] & 0xC0) != 0x80) count++;
    }
    return count;
}

/* The bytes of a description that are the title: the first paragraph, or of one that is too long the first sentence. */
static size_t title_bytes(const char *text, size_t paragraph) {
    if (count_characters(text, paragraph) <= TITLE_MAX) return paragraph;
    for (size_t at = 1; at < paragraph; at++) {
        if ((text[at] == ' ' || text[at] == '\n') && strchr(".!?", text[at - 1])) {
            return count_characters(text, at) <= TITLE_MAX ? at : 0;
        }
    }
    return 0;
}

static void definition(weir_buffer *to, const weir_tool *tool) {
    weir_add(to, "{\"name\":");
    weir_add_string(to, tool->name, strlen(tool->name));
    if (tool->description) {
        const char *rest = strstr(tool->description, "\n\n");
        size_t first = rest ? (size_t)(rest - tool->description) : strlen(tool->description);
        size_t title = title_bytes(tool->description, first);
        if (title) {
            weir_add(to, ",\"title\":");
            weir_add_string(to, tool->description, title);
        }
        member(to, "description", rest && title == first ? rest + 2 : tool->description);
    }
    weir_add(to, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    for (const weir_parameter *at = tool->parameters; at && at->name; at++) {
        if (at != tool->parameters) weir_add(to, ",");
        parameter(to, at);
    }
    const char *separator = "},\"required\":[";
    for (const weir_parameter *at = tool->parameters; at && at->name; at++) {
        if (at->default_json || at->optional) continue;
        weir_add(to, separator);
        weir_add_string(to, at->name, strlen(at->name));
        separator = ",";
    }
    weir_add(to, *separator == ',' ? "]}" : "}}");
    if (tool->returns) {
        weir_add(to, ",\"outputSchema\":");
        weir_add(to, tool->returns);
    }
    separator = ",\"annotations\":{";
    hint(to, &separator, "\"readOnlyHint\"", tool->read_only);
    hint(to, &separator, "\"destructiveHint\"", tool->destructive);
    hint(to, &separator, "\"idempotentHint\"", tool->idempotent);
    hint(to, &separator, "\"openWorldHint\"", tool->open_world);
    if (*separator == ',' && separator[1] == 0) weir_add(to, "}");
    if (tool->task) {
        weir_add(to, ",\"execution\":{\"taskSupport\":");
        weir_add_string(to, tool->task, strlen(tool->task));
        weir_add(to, "}");
    }
    cli(to, tool->parameters);
    weir_add(to, "}");
}

/* ---- the exports ---- */

static toolbox_string_t given_away(weir_buffer text) { return (toolbox_string_t){(uint8_t *)text.text, text.length}; }

void exports_weir_plugin_about_about(toolbox_string_t *ret) {
    weir_buffer about = {0};
    weir_add(&about, "{\"name\":");
    weir_add_string(&about, weir_this_plugin.name, strlen(weir_this_plugin.name));
    member(&about, "version", weir_this_plugin.version);
    weir_add(&about, ",\"adapters\":[],\"requests\":[");
    const char *separator = "";
    for (const weir_tool *tool = weir_this_plugin.tools; tool->name; tool++) {
        if (!tool->requests) continue;
        weir_add(&about, separator);
        weir_add(&about, tool->requests);
        separator = ",";
    }
    weir_add(&about, "]}");
    *ret = given_away(about);
}

bool exports_weir_plugin_tools_configure(toolbox_string_t *text, exports_weir_plugin_tools_error_t *err) {
    (void)err;
    free(settings);
    settings = get(text->len + 1);
    memcpy(settings, text->ptr, text->len);
    settings[text->len] = 0;
    toolbox_string_free(text);
    return true;
}

bool exports_weir_plugin_tools_definitions(toolbox_string_t *ret, exports_weir_plugin_tools_error_t *err) {
    (void)err;
    weir_buffer all = {0};
    for (const weir_tool *tool = weir_this_plugin.tools; tool->name; tool++) {
        weir_add(&all, tool == weir_this_plugin.tools ? "[" : ",");
        definition(&all, tool);
    }
    weir_add(&all, all.length ? "]" : "[]");
    *ret = given_away(all);
    return true;
}

/* Moves a text to the gateway, which frees it. */
static toolbox_option_string_t moved(char **text) {
    char *given = *text;
    *text = NULL;
    return (toolbox_option_string_t){given != NULL, {(uint8_t *)given, given ? strlen(given) : 0}};
}

/* A mistake of the author's, which no caller hears. */
static void log_fault(const char *outcome, const weir_tool *tool, const char *fault) {
    weir_buffer line = {0};
    weir_add(&line, outcome);
    weir_add(&line, ": `");
    weir_add(&line, tool->name);
    weir_add(&line, fault);
    toolbox_string_t level = borrowed("error"), text = borrowed(line.text), fields = borrowed(LOG_ONLY);
    weir_plugin_log_write(&level, &text, &fields);
    free(line.text);
}

/* The mistake is logged, and the caller reads one safe sentence. */
static bool fail_at_fault(const weir_tool *tool, weir_call *call, const char *fault) {
    log_fault("The tool failed", tool, fault);
    return fail(call->error, "internal", "The tool failed; its operator finds the reason in the log.", NULL, 0);
}

static bool has_nul(weir_value json) {
    for (const char *at = json.at; at && at + 6 <= json.end; at++) {
        if (*at != '\\') continue;
        if (memcmp(at, "\\u0000", 6) == 0) return true;
        at++;
    }
    return false;
}

/* A C string ends at a 0: anything after it would be lost silently. */
static bool refuse_nul(const weir_tool *tool, weir_call *call) {
    const weir_parameter *at = tool->parameters;
    while (at && at->name && !has_nul(weir_argument(call, at->name))) at++;
    const char *field = at ? at->name : NULL;
    weir_buffer sentence = {0};
    weir_add(&sentence, field ? "`" : "The call");
    weir_add(&sentence, field ? field : "");
    weir_add(&sentence, field ? "`" : "");
    weir_add(&sentence, " holds the character U+0000, which no text of this tool can hold: leave it out.");
    fail(call->error, "invalid", sentence.text, field, 0);
    free(sentence.text);
    return false;
}

static bool run(const weir_tool *tool, weir_call *call, exports_weir_plugin_tools_answer_t *ret) {
    if (has_nul(call->arguments) || has_nul(call->resumed)) return refuse_nul(tool, call);
    if (!tool->run) return fail_at_fault(tool, call, "` has no function: write `.run`");
    if (!tool->run(call)) {
        if (call->error->code.len) return false;
        return fail_at_fault(tool, call, "` returned false and refused nothing: return what `weir_refuse` does");
    }
    if (!tool->returns && !call->requests && call->value.length) {
        static const char UNDECLARED[] = "` answered a value and declares none: write `.returns`";
        if (tool->read_only == WEIR_YES) return fail_at_fault(tool, call, UNDECLARED);
        /* What it has written stays, and a caller who hears of a failure may call again. */
        log_fault("The value is left out of the answer", tool, UNDECLARED);
    }
    emptied(call->error);
    memset(ret, 0, sizeof *ret);
    toolbox_string_dup(&ret->kind, call->requests ? "input-required" : "complete");
    if (call->requests) {
        ret->requests = moved(&call->requests);
        ret->state = moved(&call->state);
        return true;
    }
    if (!tool->returns && !call->content) call->content = copy("[]");
    ret->content = moved(&call->content);
    ret->value.is_some = tool->returns != NULL;
    if (tool->returns) {
        if (!call->value.length) weir_add(&call->value, "null");
        ret->value.val = given_away(call->value);
        call->value = (weir_buffer){0};
    }
    return true;
}

static void release(weir_call *call) {
    while (call->pieces) {
        piece *before = call->pieces->before;
        free(call->pieces);
        call->pieces = before;
    }
    free(call->value.text);
    free(call->content);
    free(call->requests);
    free(call->state);
}

bool exports_weir_plugin_tools_call(exports_weir_plugin_tools_invocation_t *invocation,
                                    exports_weir_plugin_tools_answer_t *ret, exports_weir_plugin_tools_error_t *err) {
    memset(err, 0, sizeof *err);
    weir_call call = {.arguments = weir_json(invocation->arguments.ptr, invocation->arguments.len), .context = weir_json(invocation->context.ptr, invocation->context.len), .error = err};
    if (invocation->resumed.is_some) call.resumed = weir_json(invocation->resumed.val.ptr, invocation->resumed.val.len);
    const weir_tool *tool = weir_this_plugin.tools;
    while (tool->name && (strlen(tool->name) != invocation->tool.len || memcmp(tool->name, invocation->tool.ptr, invocation->tool.len))) tool++;
    bool done = tool->name ? run(tool, &call, ret) : fail(err, "unsupported", "This plugin has no such tool.", NULL, 0);
    release(&call);
    exports_weir_plugin_tools_invocation_free(invocation);
    return done;
}

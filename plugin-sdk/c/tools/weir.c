/* The SDK behind weir.h. Without stdio, so that a component imports nothing but Weir's own interfaces. */
#include "weir.h"

#include <stdlib.h>
#include <string.h>

#include "toolbox.h"

/* A text that grows. Where memory ends, the call ends: a trap is reported as such. */
typedef struct {
    char *text;
    size_t length, room;
} buffer;

typedef struct piece {
    struct piece *before;
} piece;

struct weir_call {
    weir_value arguments, context, resumed;
    piece *pieces;
    buffer value;
    char *content, *requests, *state;
    exports_weir_plugin_tools_error_t *error;
};

static char *settings;

static void *get(size_t bytes) {
    void *room = malloc(bytes ? bytes : 1);
    if (!room) __builtin_trap();
    return room;
}

static void add_n(buffer *to, const char *text, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = (to->length + length + 1) * 2;
        to->text = realloc(to->text, to->room);
        if (!to->text) __builtin_trap();
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = 0;
}

static void add(buffer *to, const char *text) { add_n(to, text, strlen(text)); }

static void add_integer(buffer *to, int64_t number) {
    char digits[21], *at = digits + sizeof digits;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0) add(to, "-");
    add_n(to, at, (size_t)(digits + sizeof digits - at));
}

static void add_string(buffer *to, const char *text, size_t length) {
    static const char HEX[] = "0123456789abcdef", SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    add(to, "\"");
    for (size_t i = 0; i < length; i++) {
        const char *named = NULL;
        for (const char *at = SHORT; *at && !named; at += 2) {
            if (*at == text[i]) named = at + 1;
        }
        if (named) {
            char escaped[] = {'\\', *named};
            add_n(to, escaped, 2);
        } else if ((unsigned char)text[i] < 0x20) {
            char escaped[] = {'\\', 'u', '0', '0', HEX[text[i] >> 4], HEX[text[i] & 15]};
            add_n(to, escaped, 6);
        } else {
            add_n(to, text + i, 1);
        }
    }
    add(to, "\"");
}

/* ---- reading JSON that is valid ---- */

static const char *skip_spaces(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
    return at;
}

/* The end of the value at `at`. */
static const char *skip(const char *at, const char *end) {
    int depth = 0;
    bool inside = false;
    for (; at < end; at++) {
        if (inside) {
            if (*at == '\\') at++;
            else if (*at == '"') {
                inside = false;
                if (!depth) return at + 1;
            }
        } else if (*at == '"') {
            inside = true;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (!depth) return at;
            if (!--depth) return at + 1;
        } else if (!depth && (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
            return at;
        }
    }
    return end;
}

/* The next value of a list, or of an object after its name; false at the end. `at` moves on. */
static bool next(const char **at, const char *end, weir_value *name, weir_value *value) {
    const char *here = skip_spaces(*at, end);
    if (here < end && *here == ',') here = skip_spaces(here + 1, end);
    if (here >= end || *here == ']' || *here == '}') return false;
    if (name) {
        *name = (weir_value){here, skip(here, end)};
        here = skip_spaces(name->end, end);
        if (here >= end || *here != ':') return false;
        here = skip_spaces(here + 1, end);
    }
    *value = (weir_value){here, skip(here, end)};
    *at = value->end;
    return true;
}

static unsigned hex(const char *at) {
    unsigned code = 0;
    for (int i = 0; i < 4; i++) code = code * 16 + (unsigned)(at[i] <= '9' ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
    return code;
}

/* Writes the text of a JSON string without its quotes; its length. It never is longer than its JSON. */
static size_t unescape(weir_value value, char *to) {
    char *out = to;
    for (const char *at = value.at + 1; at < value.end - 1; at++) {
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        static const char NAMED[] = "bfnrt", MEANT[] = "\b\f\n\r\t";
        const char *named = strchr(NAMED, *at);
        if (*at != 'u') {
            *out++ = named && *at ? MEANT[named - NAMED] : *at;
            continue;
        }
        unsigned code = hex(at + 1);
        at += 4;
        if (code >= 0xd800 && code < 0xdc00 && at + 6 < value.end && at[1] == '\\' && at[2] == 'u') {
            code = 0x10000 + ((code - 0xd800) << 10) + (hex(at + 3) - 0xdc00);
            at += 6;
        }
        if (code < 0x80) {
            *out++ = (char)code;
        } else if (code < 0x800) {
            *out++ = (char)(0xc0 | code >> 6);
            *out++ = (char)(0x80 | (code & 63));
        } else if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
            *out++ = (char)(0x80 | (code >> 6 & 63));
            *out++ = (char)(0x80 | (code & 63));
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 63));
            *out++ = (char)(0x80 | (code >> 6 & 63));
            *out++ = (char)(0x80 | (code & 63));
        }
    }
    *out = 0;
    return (size_t)(out - to);
}

static bool is_string(weir_value value) { return value.at && value.at < value.end && *value.at == '"'; }

weir_value weir_member(weir_value object, const char *name) {
    if (!object.at || object.at >= object.end || *object.at != '{') return (weir_value){NULL, NULL};
    const char *at = object.at + 1;
    weir_value found, value;
    while (next(&at, object.end, &found, &value)) {
        char *text = get((size_t)(found.end - found.at) + 1);
        bool is = unescape(found, text) == strlen(name) && strcmp(text, name) == 0;
        free(text);
        if (is) return value;
    }
    return (weir_value){NULL, NULL};
}

weir_value weir_item(weir_value list, size_t index) {
    if (!list.at || list.at >= list.end || *list.at != '[') return (weir_value){NULL, NULL};
    const char *at = list.at + 1;
    weir_value value;
    for (size_t i = 0; next(&at, list.end, NULL, &value); i++) {
        if (i == index) return value;
    }
    return (weir_value){NULL, NULL};
}

size_t weir_count(weir_value list) {
    size_t count = 0;
    if (!list.at || list.at >= list.end || *list.at != '[') return 0;
    const char *at = list.at + 1;
    weir_value value;
    while (next(&at, list.end, NULL, &value)) count++;
    return count;
}

bool weir_is_given(weir_value value) { return value.at && value.at < value.end && *value.at != 'n'; }
bool weir_boolean(weir_value value) { return value.at && value.at < value.end && *value.at == 't'; }

double weir_number(weir_value value) {
    char digits[64] = {0};
    size_t length = value.at ? (size_t)(value.end - value.at) : 0;
    memcpy(digits, value.at, length < sizeof digits ? length : sizeof digits - 1);
    return strtod(digits, NULL);
}

int64_t weir_integer(weir_value value) {
    char digits[64] = {0}, *end;
    size_t length = value.at ? (size_t)(value.end - value.at) : 0;
    memcpy(digits, value.at, length < sizeof digits ? length : sizeof digits - 1);
    int64_t number = strtoll(digits, &end, 10);
    return *end ? (int64_t)strtod(digits, NULL) : number; /* 3.0 and 3e0 are whole numbers too */
}

void *weir_room(weir_call *call, size_t bytes) {
    piece *room = get(sizeof(piece) + bytes);
    room->before = call->pieces;
    call->pieces = room;
    return room + 1;
}

const char *weir_text(weir_call *call, weir_value value) {
    if (!is_string(value)) return "";
    char *text = weir_room(call, (size_t)(value.end - value.at) + 1);
    unescape(value, text);
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

void weir_print(weir_call *call, const char *json) { add(&call->value, json); }
void weir_print_text(weir_call *call, const char *text) { add_string(&call->value, text, strlen(text)); }
void weir_print_integer(weir_call *call, int64_t number) { add_integer(&call->value, number); }

static char *copy(const char *text) {
    size_t length = strlen(text) + 1;
    return memcpy(get(length), text, length);
}

void weir_content(weir_call *call, const char *json) {
    free(call->content);
    call->content = copy(json);
}

bool weir_ask(weir_call *call, const char *requests, const char *state) {
    call->requests = copy(requests);
    call->state = state ? copy(state) : NULL;
    return true;
}

static bool fail(exports_weir_plugin_tools_error_t *error, const char *reason, const char *sentence, const char *field, unsigned wait) {
    memset(error, 0, sizeof *error);
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
    if (!weir_plugin_sql_query(&asked, &found, call->error)) return false;
    char *kept = weir_room(call, found.records.len);
    memcpy(kept, found.records.ptr, found.records.len);
    *rows = (weir_value){kept, kept + found.records.len};
    weir_plugin_sql_rows_free(&found);
    return true;
}

bool weir_execute(weir_call *call, const char *connection, const char *text, const char *parameters, uint64_t *changed) {
    weir_plugin_sql_statement_t asked = statement(connection, text, parameters, 1);
    return weir_plugin_sql_execute(&asked, changed, call->error);
}

/* ---- definitions ---- */

static void member(buffer *to, const char *name, const char *text) {
    add(to, ",\"");
    add(to, name);
    add(to, "\":");
    add_string(to, text, strlen(text));
}

/* Adds a schema without its last brace, and returns what separates it from a further member. */
static const char *opened(buffer *to, const char *schema) {
    const char *end = strrchr(schema, '}');
    size_t length = end ? (size_t)(end - schema) : strlen(schema);
    add_n(to, schema, length);
    bool is_empty = strspn(schema + 1, " \t\r\n") + 1 >= length;
    return is_empty ? "" : ",";
}

static void parameter(buffer *to, const weir_parameter *given) {
    static const char *TYPES[] = {"{\"type\":\"string\"}", "{\"type\":\"integer\"}", "{\"type\":\"number\"}",
                                  "{\"type\":\"boolean\"}"};
    add_string(to, given->name, strlen(given->name));
    add(to, ":");
    const char *comma = opened(to, given->schema ? given->schema : TYPES[given->type]);
    const struct {
        const char *name;
        unsigned value;
    } lengths[] = {{"\"minLength\":", given->min_length}, {"\"maxLength\":", given->max_length}};
    for (int i = 0; i < 2; i++) {
        if (!lengths[i].value) continue;
        add(to, comma);
        add(to, lengths[i].name);
        add_integer(to, lengths[i].value);
        comma = ",";
    }
    const char *default_json = given->default_json ? given->default_json : given->optional ? "null" : NULL;
    const char *members[][2] = {
        {"\"minimum\":", given->minimum}, {"\"maximum\":", given->maximum}, {"\"default\":", default_json}};
    for (int i = 0; i < 3; i++) {
        if (!members[i][1]) continue;
        add(to, comma);
        add(to, members[i][0]);
        add(to, members[i][1]);
        comma = ",";
    }
    if (given->description) {
        add(to, comma);
        add(to, "\"description\":");
        add_string(to, given->description, strlen(given->description));
    }
    add(to, "}");
}

static void hint(buffer *to, const char **separator, const char *name, weir_hint said) {
    if (said == WEIR_UNSAID) return;
    add(to, *separator);
    add(to, name);
    add(to, said == WEIR_YES ? ":true" : ":false");
    *separator = ",";
}

static void cli(buffer *to, const weir_parameter *parameters) {
    bool any = false;
    for (const weir_parameter *at = parameters; at && at->name; at++) {
        if (!at->positional && !at->alias && !at->metavar) continue;
        add(to, any ? "," : ",\"cli\":{\"parameters\":{");
        any = true;
        add_string(to, at->name, strlen(at->name));
        const char *comma = "";
        add(to, ":{");
        if (at->positional) {
            add(to, "\"positional\":true");
            comma = ",";
        }
        if (at->alias) {
            add(to, comma);
            add(to, "\"aliases\":[");
            add_string(to, at->alias, strlen(at->alias));
            add(to, "]");
            comma = ",";
        }
        if (at->metavar) {
            add(to, comma);
            add(to, "\"metavar\":");
            add_string(to, at->metavar, strlen(at->metavar));
        }
        add(to, "}");
    }
    if (any) add(to, "}}");
}

static void definition(buffer *to, const weir_tool *tool) {
    add(to, "{\"name\":");
    add_string(to, tool->name, strlen(tool->name));
    if (tool->description) {
        const char *rest = strstr(tool->description, "\n\n");
        size_t first = rest ? (size_t)(rest - tool->description) : strlen(tool->description);
        add(to, ",\"title\":");
        add_string(to, tool->description, first);
        member(to, "description", rest ? rest + 2 : tool->description);
    }
    add(to, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    for (const weir_parameter *at = tool->parameters; at && at->name; at++) {
        if (at != tool->parameters) add(to, ",");
        parameter(to, at);
    }
    const char *separator = "},\"required\":[";
    for (const weir_parameter *at = tool->parameters; at && at->name; at++) {
        if (at->default_json || at->optional) continue;
        add(to, separator);
        add_string(to, at->name, strlen(at->name));
        separator = ",";
    }
    add(to, *separator == ',' ? "]}" : "}}");
    if (tool->returns) {
        add(to, ",\"outputSchema\":");
        add(to, tool->returns);
    }
    separator = ",\"annotations\":{";
    hint(to, &separator, "\"readOnlyHint\"", tool->read_only);
    hint(to, &separator, "\"destructiveHint\"", tool->destructive);
    hint(to, &separator, "\"idempotentHint\"", tool->idempotent);
    hint(to, &separator, "\"openWorldHint\"", tool->open_world);
    if (*separator == ',' && separator[1] == 0) add(to, "}");
    if (tool->task) {
        add(to, ",\"execution\":{\"taskSupport\":");
        add_string(to, tool->task, strlen(tool->task));
        add(to, "}");
    }
    cli(to, tool->parameters);
    add(to, "}");
}

/* ---- the exports ---- */

static toolbox_string_t given_away(buffer text) { return (toolbox_string_t){(uint8_t *)text.text, text.length}; }

void exports_weir_plugin_about_about(toolbox_string_t *ret) {
    buffer about = {0};
    add(&about, "{\"name\":");
    add_string(&about, weir_this_plugin.name, strlen(weir_this_plugin.name));
    member(&about, "version", weir_this_plugin.version);
    add(&about, ",\"adapters\":[],\"requests\":[");
    const char *separator = "";
    for (const weir_tool *tool = weir_this_plugin.tools; tool->name; tool++) {
        if (!tool->requests) continue;
        add(&about, separator);
        add(&about, tool->requests);
        separator = ",";
    }
    add(&about, "]}");
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
    buffer all = {0};
    for (const weir_tool *tool = weir_this_plugin.tools; tool->name; tool++) {
        add(&all, tool == weir_this_plugin.tools ? "[" : ",");
        definition(&all, tool);
    }
    add(&all, all.length ? "]" : "[]");
    *ret = given_away(all);
    return true;
}

static weir_value whole(const toolbox_string_t *text) {
    const char *from = (const char *)text->ptr, *end = from + text->len;
    return (weir_value){skip_spaces(from, end), end};
}

static toolbox_option_string_t option(char *text) {
    return (toolbox_option_string_t){text != NULL, {(uint8_t *)text, text ? strlen(text) : 0}};
}

static bool run(const weir_tool *tool, weir_call *call, exports_weir_plugin_tools_answer_t *ret) {
    if (!tool->run(call)) {
        free(call->value.text);
        free(call->content);
        return false;
    }
    memset(ret, 0, sizeof *ret);
    toolbox_string_dup(&ret->kind, call->requests ? "input-required" : "complete");
    if (call->requests) {
        ret->requests = option(call->requests);
        ret->state = option(call->state);
        return true;
    }
    if (!tool->returns && !call->content) call->content = copy("[]");
    ret->content = option(call->content);
    ret->value.is_some = tool->returns != NULL;
    if (tool->returns) {
        if (!call->value.text) add(&call->value, "null");
        ret->value.val = given_away(call->value);
    }
    return true;
}

bool exports_weir_plugin_tools_call(exports_weir_plugin_tools_invocation_t *invocation,
                                    exports_weir_plugin_tools_answer_t *ret, exports_weir_plugin_tools_error_t *err) {
    weir_call call = {.arguments = whole(&invocation->arguments), .context = whole(&invocation->context), .error = err};
    if (invocation->resumed.is_some) call.resumed = whole(&invocation->resumed.val);
    const weir_tool *tool = weir_this_plugin.tools;
    while (tool->name && (strlen(tool->name) != invocation->tool.len || memcmp(tool->name, invocation->tool.ptr, invocation->tool.len))) tool++;
    bool done = tool->name ? run(tool, &call, ret) : fail(err, "unsupported", "This plugin has no such tool.", NULL, 0);
    while (call.pieces) {
        piece *before = call.pieces->before;
        free(call.pieces);
        call.pieces = before;
    }
    exports_weir_plugin_tools_invocation_free(invocation);
    return done;
}

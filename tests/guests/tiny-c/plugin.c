/* The small adapter that every language writes the same, in C.
 *
 * Two rules of the generated bindings: every argument is the callee's to free, and what is returned is freed by the
 * caller, so it must come from malloc. There are no exceptions to guard here; a crash is a trap. Without stdio, so that
 * the component imports nothing but Weir's own interfaces. */
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

#define FIELD(key, type) "{\"key\":\"" key "\",\"type\":\"" type "\",\"nullable\":false}"
#define SHAPE                                                                                                          \
    "{\"name\":\"tiny\",\"fields\":[" FIELD("id", "integer") "," FIELD("name", "string") ","                           \
    FIELD("greeting", "string") "],\"key\":[\"id\"],\"capabilities\":{\"read\":true,"                                 \
    "\"matches\":{\"*\":[\"equals\"]},\"order\":[\"id\"]}}"

typedef exports_weir_plugin_collections_error_t error_t;

static const char *NAMES[] = {"one", "two", "three"};
enum { RECORDS = 3, COLLECTIONS_MAX = 256 };

/* The open collections: their names and greetings, the latter as JSON strings, quotes included. */
static struct {
    char *name, *greeting;
} opened[COLLECTIONS_MAX];

static bool fail(error_t *err, const char *code, const char *message, const char *field) {
    memset(err, 0, sizeof *err);
    adapter_string_dup(&err->code, code);
    adapter_string_dup(&err->message, message);
    err->field.is_some = field != NULL;
    if (field) adapter_string_dup(&err->field.val, field);
    return false;
}

static bool is(const adapter_string_t *text, const char *wanted) {
    return text->len == strlen(wanted) && memcmp(text->ptr, wanted, text->len) == 0;
}

static char *copy(const adapter_string_t *text) {
    char *to = malloc(text->len + 1);
    memcpy(to, text->ptr, text->len);
    to[text->len] = 0;
    return to;
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') at++;
    return at;
}

/* The settings are one greeting, {"greeting": "..."}; its JSON string, or NULL. A real adapter would take a JSON
 * library; this one is here to show the interface. */
static char *parse(adapter_string_t *settings) {
    char *text = copy(settings), *greeting = NULL;
    const char *at = skip_spaces(text);
    if (*at == '{') {
        at = skip_spaces(at + 1);
        if (strncmp(at, "\"greeting\"", 10) == 0) {
            at = skip_spaces(at + 10);
            if (*at == ':') {
                const char *from = skip_spaces(at + 1), *to = from;
                if (*to++ == '"') {
                    while (*to && *to != '"') to += *to == '\\' && to[1] ? 2 : 1;
                    if (*to == '"' && *skip_spaces(to + 1) == '}') {
                        adapter_string_t found = {(uint8_t *)from, (size_t)(to + 1 - from)};
                        greeting = copy(&found);
                    }
                }
            }
        }
    }
    free(text);
    return greeting;
}

void exports_weir_plugin_about_about(adapter_string_t *ret) {
    adapter_string_dup(ret, "{\"name\":\"tiny-c\",\"version\":\"0.1.0\",\"adapters\":[{\"name\":\"tiny-c\","
                            "\"settings\":{\"type\":\"object\",\"required\":[\"greeting\"]}}],\"requests\":[\"sql\"]}");
}

bool exports_weir_plugin_collections_describe(adapter_string_t *adapter, adapter_string_t *settings,
                                              adapter_string_t *ret, error_t *err) {
    char *greeting = parse(settings);
    adapter_string_free(adapter);
    adapter_string_free(settings);
    if (!greeting) return fail(err, "invalid", "The settings are wrong: they are one greeting.", "settings");
    free(greeting);
    adapter_string_dup(ret, SHAPE);
    return true;
}

bool exports_weir_plugin_collections_configure(adapter_string_t *collection, adapter_string_t *adapter,
                                               adapter_string_t *settings, adapter_string_t *shape, error_t *err) {
    char *greeting = parse(settings);
    bool done = false;
    for (int i = 0; greeting && i < COLLECTIONS_MAX && !done; i++) {
        if (opened[i].name && !is(collection, opened[i].name)) continue;
        free(opened[i].name);
        free(opened[i].greeting);
        opened[i].name = copy(collection);
        opened[i].greeting = greeting;
        done = true;
    }
    adapter_string_free(collection);
    adapter_string_free(adapter);
    adapter_string_free(settings);
    adapter_string_free(shape);
    if (!greeting) return fail(err, "invalid", "The settings are wrong: they are one greeting.", "settings");
    if (!done) free(greeting);
    return done || fail(err, "internal", "There are too many collections open.", NULL);
}

/* Copies a text and its final 0; the place of the latter. */
static char *append(char *to, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length + 1);
    return to + length;
}

/* 1: holds, 0: does not, -1: failed. */
static int holds(int index, const char *greeting, exports_weir_plugin_collections_condition_t *condition, error_t *err) {
    char digit[] = {(char)('1' + index), 0}, quoted[64];
    const char *own = quoted;
    if (is(&condition->column, "id")) {
        own = digit;
    } else if (is(&condition->column, "name")) {
        char *end = append(quoted, "\"");
        append(append(end, NAMES[index]), "\"");
    } else if (is(&condition->column, "greeting")) {
        own = greeting;
    } else {
        char *column = copy(&condition->column);
        fail(err, "invalid", "The collection has no such column.", column);
        free(column);
        return -1;
    }
    if (!is(&condition->comparison, "equals")) {
        fail(err, "unsupported", "The comparison is unknown.", NULL);
        return -1;
    }
    return is(&condition->value, own);
}

static bool read_opened(const char *greeting, exports_weir_plugin_collections_query_t *query,
                        exports_weir_plugin_collections_page_t *ret, error_t *err) {
    long behind = 0;
    if (query->cursor.is_some) {
        char *cursor = copy(&query->cursor.val), *behind_end;
        behind = strtol(cursor, &behind_end, 10);
        bool wrong = *behind_end || behind_end == cursor;
        free(cursor);
        if (wrong) return fail(err, "invalid", "The cursor is not one of this list.", "cursor");
    }
    uint32_t count = 0;
    char *records = malloc(RECORDS * (strlen(greeting) + 64) + 3), *end = append(records, "[");
    ret->next.is_some = false;
    for (int index = 0; index < RECORDS; index++) {
        int all = index + 1 > behind;
        for (size_t i = 0; i < query->conditions.len; i++) {
            int one = holds(index, greeting, &query->conditions.ptr[i], err);
            if (one < 0) {
                free(records);
                return false;
            }
            all &= one;
        }
        if (!all) continue;
        if (count == query->limit) {
            char next[] = {(char)('0' + index), 0};
            ret->next.is_some = true;
            adapter_string_dup(&ret->next.val, next);
            break;
        }
        char digit[] = {(char)('1' + index), 0};
        end = append(append(append(end, count++ ? "," : ""), "{\"id\":"), digit);
        end = append(append(append(end, ",\"name\":\""), NAMES[index]), "\",\"greeting\":");
        end = append(append(end, greeting), "}");
    }
    end = append(end, "]");
    ret->records = (adapter_string_t){(uint8_t *)records, (size_t)(end - records)};
    return true;
}

static void large(adapter_string_t *ret, size_t length) {
    char *text = malloc(length + 16), *end = append(text, "[{\"name\":\"");
    memset(end, 'x', length);
    end = append(end + length, "\"}]");
    *ret = (adapter_string_t){(uint8_t *)text, (size_t)(end - text)};
}

/* What every language does alike when a test asks for it: `options` of {"do":word}, spelled so. */
static bool act(const adapter_string_t *options, adapter_string_t *ret, error_t *err) {
    static int calls;
    if (is(options, "{\"do\":\"refuse\"}")) {
        fail(err, "conflict", "Refused, as asked.", "name");
        err->retry_after_ms.is_some = true;
        err->retry_after_ms.val = 7;
        return false;
    }
    if (is(options, "{\"do\":\"query\"}")) {
        weir_plugin_sql_statement_t statement = {.limit = 1};
        weir_plugin_sql_rows_t rows;
        adapter_string_set(&statement.connection, "db");
        adapter_string_set(&statement.text, "SELECT 'one' AS name");
        adapter_string_set(&statement.parameters, "[]");
        if (!weir_plugin_sql_query(&statement, &rows, err)) return false;
        *ret = rows.records;
        return true;
    }
    if (is(options, "{\"do\":\"count\"}")) { /* what an instance remembers */
        char digit[] = {(char)('0' + ++calls % 10), 0}, text[32];
        append(append(append(text, "[{\"calls\":"), digit), "}]");
        adapter_string_dup(ret, text);
        return true;
    }
    if (is(options, "{\"do\":\"large\"}")) return large(ret, 5 << 20), true;
    if (is(options, "{\"do\":\"too-large\"}")) return large(ret, 9 << 20), true;
    if (is(options, "{\"do\":\"spin\"}")) {
        for (volatile int turn = 0;; turn++) {
        }
    }
    __builtin_trap();
}

bool exports_weir_plugin_collections_read(adapter_string_t *collection, exports_weir_plugin_collections_query_t *query,
                                          exports_weir_plugin_collections_page_t *ret, error_t *err) {
    adapter_string_t level, message, reading;
    adapter_string_set(&level, "info");
    adapter_string_set(&message, "reading");
    adapter_string_set(&reading, "reading");
    weir_plugin_log_write(&level, &message, NULL);
    double total = 3;
    weir_plugin_progress_report(1, &total, &reading);
    if (query->options.is_some) {
        ret->next.is_some = false;
        bool acted = act(&query->options.val, &ret->records, err);
        adapter_string_free(collection);
        exports_weir_plugin_collections_query_free(query);
        return acted;
    }
    const char *greeting = NULL;
    for (int i = 0; i < COLLECTIONS_MAX && !greeting; i++) {
        if (opened[i].name && is(collection, opened[i].name)) greeting = opened[i].greeting;
    }
    bool ok = greeting ? read_opened(greeting, query, ret, err)
                       : fail(err, "not_configured", "The collection was never configured.", NULL);
    adapter_string_free(collection);
    exports_weir_plugin_collections_query_free(query);
    return ok;
}

bool exports_weir_plugin_collections_write(adapter_string_t *collection, exports_weir_plugin_collections_change_t *change,
                                           adapter_string_t *ret, error_t *err) {
    (void)ret;
    adapter_string_free(collection);
    exports_weir_plugin_collections_change_free(change);
    return fail(err, "unsupported", "tiny-c is read-only.", NULL);
}

/* How many records meet the conditions, under the name of the one measure. */
bool exports_weir_plugin_summaries_summarize(adapter_string_t *collection, exports_weir_plugin_summaries_query_t *query,
                                             exports_weir_plugin_summaries_summary_t *ret, error_t *err) {
    bool done = query->groups.len == 0 && query->measures.len == 1 && is(&query->measures.ptr[0].function, "count");
    if (!done) fail(err, "unsupported", "Records are counted, and nothing else.", NULL);
    int count = 0;
    for (int index = 0; index < RECORDS && done; index++) {
        int all = 1;
        for (size_t i = 0; i < query->conditions.len && all > 0; i++) {
            exports_weir_plugin_summaries_condition_t *one = &query->conditions.ptr[i];
            exports_weir_plugin_collections_condition_t condition = {one->column, one->comparison, one->value};
            all = holds(index, "\"\"", &condition, err);
        }
        done = all >= 0;
        count += all > 0;
    }
    if (done) {
        char digit[] = {(char)('0' + count), 0}, *name = copy(&query->measures.ptr[0].name), text[80];
        append(append(append(append(append(text, "[{\""), name), "\":"), digit), "}]");
        free(name);
        adapter_string_dup(&ret->records, text);
        ret->more = false;
    }
    adapter_string_free(collection);
    exports_weir_plugin_summaries_query_free(query);
    return done;
}

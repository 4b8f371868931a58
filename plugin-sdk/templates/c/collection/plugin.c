/* An adapter: the numbers up to a bound, as a collection.
 *
 * The functions with long names are the interface. Every argument is the function's own to free, and what is returned
 * is freed by the caller, so it must come from malloc. */
#include <stdlib.h>
#include <string.h>

#include "sdk/adapter.h"
#include "sdk/json.h"

#define FIELD(key) "{\"key\":\"" key "\",\"type\":\"integer\",\"nullable\":false}"
#define SHAPE                                                                                                          \
    "{\"name\":\"numbers\",\"fields\":[" FIELD("number") "," FIELD("square") "],\"key\":[\"number\"],"                 \
    "\"capabilities\":{\"read\":true,\"matches\":{\"*\":[\"equals\"]},\"order\":[\"number\"],"                         \
    "\"summaries\":\"count\"}}"
#define SETTINGS "{\"type\":\"object\",\"properties\":{\"up_to\":{\"type\":\"integer\"}},\"required\":[\"up_to\"]}"
#define ABOUT                                                                                                          \
    "{\"name\":\"{{name}}\",\"version\":\"0.1.0\",\"adapters\":[{\"name\":\"{{name}}\",\"settings\":" SETTINGS         \
    "}],\"requests\":[]}"

typedef exports_weir_plugin_collections_error_t error_t;
typedef exports_weir_plugin_collections_query_t query_t;
typedef exports_weir_plugin_collections_page_t page_t;
typedef exports_weir_plugin_collections_condition_t condition_t;
typedef exports_weir_plugin_summaries_query_t summary_query_t;
typedef exports_weir_plugin_summaries_summary_t summary_t;

/* What a collection was opened with. An instance may be dropped at any time: this is a cache and nothing more. */
typedef struct collection {
    struct collection *next;
    char *name;
    int64_t last;
} collection;
static collection *opened;

static bool fail(error_t *err, const char *code, const char *message, const char *field) {
    memset(err, 0, sizeof *err);
    adapter_string_dup(&err->code, code);
    adapter_string_dup(&err->message, message);
    err->field.is_some = field != NULL;
    if (field) adapter_string_dup(&err->field.val, field);
    return false;
}

/* The text with a final 0. */
static char *copy(const adapter_string_t *text) {
    char *to = malloc(text->len + 1);
    if (!to) __builtin_trap();
    memcpy(to, text->ptr, text->len);
    to[text->len] = 0;
    return to;
}

static bool is(const adapter_string_t *text, const char *wanted) {
    return text->len == strlen(wanted) && memcmp(text->ptr, wanted, text->len) == 0;
}

static bool read_settings(const adapter_string_t *settings, int64_t *last, error_t *err) {
    weir_value up_to = weir_member(weir_json(settings->ptr, settings->len), "up_to");
    *last = weir_integer(up_to);
    if (*last >= 1 && weir_number(up_to) == (double)*last) return true;
    return fail(err, "invalid", "`up_to` must be a whole number from 1 on.", "up_to");
}

static collection *find(const adapter_string_t *name) {
    collection *at = opened;
    while (at && !is(name, at->name)) at = at->next;
    return at;
}

/* Whether the record meets a condition, unless that cannot be understood: then it returns false and `*failed` is true. */
static bool meets(int64_t number, const condition_t *condition, bool *failed, error_t *err) {
    char *column = copy(&condition->column);
    bool is_square = strcmp(column, "square") == 0;
    *failed = !is(&condition->comparison, "equals") || (!is_square && strcmp(column, "number") != 0);
    if (*failed) fail(err, "unsupported", "There is no such column, or no such comparison of it.", column);
    free(column);
    weir_value wanted = weir_json(condition->value.ptr, condition->value.len);
    return !*failed && weir_integer(wanted) == (is_square ? number * number : number);
}

/* Whether the record meets all conditions of a page. */
static bool holds(int64_t number, const query_t *query, bool *failed, error_t *err) {
    for (size_t i = 0; i < query->conditions.len; i++) {
        if (!meets(number, &query->conditions.ptr[i], failed, err)) return false;
    }
    return true;
}

/* Whether the record meets all conditions of a summary. */
static bool is_counted(int64_t number, const summary_query_t *query, bool *failed, error_t *err) {
    for (size_t i = 0; i < query->conditions.len; i++) {
        const exports_weir_plugin_summaries_condition_t *one = &query->conditions.ptr[i];
        condition_t condition = {one->column, one->comparison, one->value};
        if (!meets(number, &condition, failed, err)) return false;
    }
    return true;
}

static bool read_from(const collection *from, const query_t *query, page_t *ret, error_t *err) {
    /* "-number" asks for the largest first; the shape offers no other order. */
    int64_t step = query->order.len > 0 && is(&query->order.ptr[0], "-number") ? -1 : 1;
    int64_t first = step > 0 ? 1 : from->last;
    if (query->cursor.is_some) {
        char *cursor = copy(&query->cursor.val), *end;
        first = strtoll(cursor, &end, 10) + step;
        bool is_wrong = end == cursor || *end;
        free(cursor);
        if (is_wrong) return fail(err, "invalid", "The cursor is not one of this list.", "cursor");
    }
    weir_buffer records = {0};
    uint32_t count = 0;
    bool failed = false;
    ret->next.is_some = false;
    weir_add(&records, "[");
    for (int64_t number = first; number >= 1 && number <= from->last && !failed; number += step) {
        if (!holds(number, query, &failed, err)) continue;
        if (count == query->limit) {
            weir_buffer cursor = {0};
            weir_add_integer(&cursor, number - step);
            ret->next.is_some = true;
            ret->next.val = (adapter_string_t){(uint8_t *)cursor.text, cursor.length};
            break;
        }
        weir_add(&records, count++ ? ",{\"number\":" : "{\"number\":");
        weir_add_integer(&records, number);
        weir_add(&records, ",\"square\":");
        weir_add_integer(&records, number * number);
        weir_add(&records, "}");
    }
    if (failed) {
        free(records.text);
        return false;
    }
    weir_add(&records, "]");
    ret->records = (adapter_string_t){(uint8_t *)records.text, records.length};
    return true;
}

/* One record with a member for each measure. The shape declares `"summaries":"count"`: with `"all"` there would be groups and
 * other functions, an order and conditions on measures too. */
static bool count_in(const collection *from, const summary_query_t *query, summary_t *ret, error_t *err) {
    int64_t count = 0;
    bool failed = query->groups.len > 0;
    for (size_t i = 0; i < query->measures.len; i++) failed |= !is(&query->measures.ptr[i].function, "count");
    if (failed) return fail(err, "unsupported", "Records are counted, and nothing else.", NULL);
    for (int64_t number = 1; number <= from->last && !failed; number++) {
        if (is_counted(number, query, &failed, err)) count++;
    }
    if (failed) return false;
    weir_buffer records = {0};
    weir_add(&records, "[{");
    for (size_t i = 0; i < query->measures.len; i++) {
        const adapter_string_t *name = &query->measures.ptr[i].name;
        if (i > 0) weir_add(&records, ",");
        weir_add_string(&records, (const char *)name->ptr, name->len);
        weir_add(&records, ":");
        weir_add_integer(&records, count);
    }
    weir_add(&records, "}]");
    ret->records = (adapter_string_t){(uint8_t *)records.text, records.length};
    ret->more = false;
    return true;
}

void exports_weir_plugin_about_about(adapter_string_t *ret) { adapter_string_dup(ret, ABOUT); }

bool exports_weir_plugin_collections_describe(adapter_string_t *adapter, adapter_string_t *settings,
                                              adapter_string_t *ret, error_t *err) {
    int64_t last;
    bool done = read_settings(settings, &last, err);
    if (done) adapter_string_dup(ret, SHAPE);
    adapter_string_free(adapter);
    adapter_string_free(settings);
    return done;
}

bool exports_weir_plugin_collections_configure(adapter_string_t *name, adapter_string_t *adapter,
                                               adapter_string_t *settings, adapter_string_t *shape, error_t *err) {
    int64_t last;
    bool done = read_settings(settings, &last, err);
    if (done) {
        collection *here = find(name);
        if (!here) {
            here = malloc(sizeof *here);
            if (!here) __builtin_trap();
            *here = (collection){opened, copy(name), 0};
            opened = here;
        }
        here->last = last;
    }
    adapter_string_free(name);
    adapter_string_free(adapter);
    adapter_string_free(settings);
    adapter_string_free(shape);
    return done;
}

bool exports_weir_plugin_collections_read(adapter_string_t *name, query_t *query, page_t *ret, error_t *err) {
    const collection *from = find(name);
    bool done = from ? read_from(from, query, ret, err)
                     : fail(err, "not_configured", "The collection was never configured.", NULL);
    adapter_string_free(name);
    exports_weir_plugin_collections_query_free(query);
    return done;
}

bool exports_weir_plugin_summaries_summarize(adapter_string_t *name, summary_query_t *query, summary_t *ret,
                                             error_t *err) {
    const collection *from = find(name);
    bool done = from ? count_in(from, query, ret, err)
                     : fail(err, "not_configured", "The collection was never configured.", NULL);
    adapter_string_free(name);
    exports_weir_plugin_summaries_query_free(query);
    return done;
}

bool exports_weir_plugin_collections_write(adapter_string_t *name, exports_weir_plugin_collections_change_t *change,
                                           adapter_string_t *ret, error_t *err) {
    (void)ret;
    adapter_string_free(name);
    exports_weir_plugin_collections_change_free(change);
    return fail(err, "unsupported", "{{name}} is read-only.", NULL);
}

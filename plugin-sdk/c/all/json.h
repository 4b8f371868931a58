/* Reading and writing JSON, for tools and for adapters. What the gateway hands over is valid JSON. */
#ifndef WEIR_JSON_H
#define WEIR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- reading ---- */

/* A part of a valid JSON text, which must outlive it. Absent: `at` is NULL. */
typedef struct {
    const char *at, *end;
} weir_value;

weir_value weir_json(const void *text, size_t length); /* a whole text */
weir_value weir_member(weir_value object, const char *name);
size_t weir_count(weir_value list);
weir_value weir_item(weir_value list, size_t index);
bool weir_is_given(weir_value value); /* there, and not null */
bool weir_is_text(weir_value value);
/* Writes the text of a JSON string and a final 0 to `to`, and returns the text's length. It needs no more room than its JSON. */
size_t weir_read_text(weir_value string, char *to);
int64_t weir_integer(weir_value value);
double weir_number(weir_value value);
bool weir_boolean(weir_value value);

/* ---- writing ---- */

/* A text that grows, empty as {0}; the text is its owner's to free. Where memory ends, the call ends: a trap is
   reported as such. */
typedef struct {
    char *text;
    size_t length, room;
} weir_buffer;

void weir_add(weir_buffer *to, const char *json);
void weir_add_n(weir_buffer *to, const char *json, size_t length);
void weir_add_integer(weir_buffer *to, int64_t number);
void weir_add_number(weir_buffer *to, double number); /* JSON has no infinity and no NaN: they are null */
void weir_add_string(weir_buffer *to, const char *text, size_t length); /* as a JSON string, quotes included */

#endif

/* JSON in a component: see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

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

size_t weir_read_text(weir_value value, char *to) {
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

weir_value weir_json(const void *text, size_t length) {
    const char *from = text, *end = from + length;
    return (weir_value){skip_spaces(from, end), end};
}

bool weir_is_text(weir_value value) { return value.at && value.at < value.end && *value.at == '"'; }

weir_value weir_member(weir_value object, const char *name) {
    if (!object.at || object.at >= object.end || *object.at != '{') return (weir_value){NULL, NULL};
    const char *at = object.at + 1;
    weir_value found, value;
    while (next(&at, object.end, &found, &value)) {
        char *text = malloc((size_t)(found.end - found.at) + 1);
        if (!text) __builtin_trap();
        bool is = weir_read_text(found, text) == strlen(name) && strcmp(text, name) == 0;
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

/* ---- writing ---- */

void weir_add_n(weir_buffer *to, const char *text, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = (to->length + length + 1) * 2;
        to->text = realloc(to->text, to->room);
        if (!to->text) __builtin_trap();
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = 0;
}

void weir_add(weir_buffer *to, const char *text) { weir_add_n(to, text, strlen(text)); }

void weir_add_integer(weir_buffer *to, int64_t number) {
    char digits[21], *at = digits + sizeof digits;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0) weir_add(to, "-");
    weir_add_n(to, at, (size_t)(digits + sizeof digits - at));
}

void weir_add_number(weir_buffer *to, double number) {
    char digits[32] = "null";
    for (int count = 15; count <= 17 && isfinite(number); count++) {
        snprintf(digits, sizeof digits, "%.*g", count, number);
        if (strtod(digits, NULL) == number) break; /* the shortest that is read back as the same number */
    }
    weir_add(to, digits);
}

void weir_add_string(weir_buffer *to, const char *text, size_t length) {
    static const char HEX[] = "0123456789abcdef", SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    weir_add(to, "\"");
    for (size_t i = 0; i < length; i++) {
        const char *named = NULL;
        for (const char *at = SHORT; *at && !named; at += 2) {
            if (*at == text[i]) named = at + 1;
        }
        if (named) {
            char escaped[] = {'\\', *named};
            weir_add_n(to, escaped, 2);
        } else if ((unsigned char)text[i] < 0x20) {
            char escaped[] = {'\\', 'u', '0', '0', HEX[text[i] >> 4], HEX[text[i] & 15]};
            weir_add_n(to, escaped, 6);
        } else {
            weir_add_n(to, text + i, 1);
        }
    }
    weir_add(to, "\"");
}

/* A native library for the tests of the plugin host. Its name, its version, the file WORKED in which its children count
 * their work for later calls and, with ENDLESS, its way to do that are given to the compiler. What it does is a word in
 * the options of a query or a change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir-plugin.h"

static const weir_table *host;

static void work(void) {
  FILE *file = fopen(WORKED, "a");
  if (!file) return;
  fputc('.', file);
  fclose(file);
}

static long worked(void) {
  FILE *file = fopen(WORKED, "r");
  if (!file) return 0;
  fseek(file, 0, SEEK_END);
  long pieces = ftell(file);
  fclose(file);
  return pieces;
}

#ifdef OPENED
/* Leaves a file behind when the library is opened, before it is asked anything. */
__attribute__((constructor)) static void opened(void) {
  FILE *file = fopen(OPENED, "w");
  if (file) fclose(file);
}
#endif

static weir_slice slice(const char *text) {
  return (weir_slice){(const uint8_t *)text, strlen(text)};
}

static weir_owned owned(const void *bytes, size_t length) {
  uint8_t *copy = malloc(length + 1);
  memcpy(copy, bytes, length);
  return (weir_owned){copy, length, length + 1};
}

static void answer(weir_reply *out, int32_t status, const char *head, const char *body) {
  *out = (weir_reply){status, owned(head, strlen(head)), owned(body, strlen(body))};
}

/* Asks the gateway. Where that fails the answer is the gateway's error record, and otherwise `[]`. */
static int ask(uint64_t token, const char *function, const char *head, const char *body, weir_reply *out) {
  weir_reply told = {0};
  host->call(token, slice(function), slice(head), slice(body), &told);
  int failed = told.status != WEIR_DONE;
  if (failed) {
    *out = (weir_reply){told.status, owned(told.head.pointer, told.head.length), owned("", 0)};
  } else {
    answer(out, WEIR_DONE, "{}", "[]");
  }
  host->release(&told);
  return failed;
}

static void spin(long milliseconds) {
  clock_t begin = clock();
  while ((clock() - begin) * 1000 / CLOCKS_PER_SEC < milliseconds) {
  }
}

static void post_many(uint64_t token, weir_reply *out) {
  char head[16 << 10] = "{\"requests\":[";
  for (int at = 0; at < 64; at++) {
    strcat(head, at ? "," : "");
    strcat(head, "{\"connection\":\"service\",\"method\":\"POST\",\"path\":\"/\",\"query\":[],\"headers\":[]}");
  }
  strcat(head, "]}");
  ask(token, "http.send-many", head, "", out);
}

static int replace(uint64_t token, const char *version, weir_reply *out) {
  char head[256];
  snprintf(head, sizeof head, "{\"root\":\"root\",\"path\":\"file\",\"if_version\":%s}", version);
  return ask(token, "files.replace", head, "new", out);
}

static void behave(uint64_t token, const char *options, weir_reply *out) {
  char text[64];
  answer(out, WEIR_DONE, "{}", "[]");
  if (strstr(options, "\\\"later\\\"")) {
    work();
#ifdef ENDLESS
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    answer(out, WEIR_DONE, "{\"next\":\"more\"}", "[]");
#endif
    if (strstr(options, "fail")) answer(out, WEIR_PANICKED, "{\"message\":\"as asked\"}", "");
  } else if (strstr(options, "ask-later")) {
    ask(token, "index.later", "null", "work", out);
  } else if (strstr(options, "ask-failing")) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (int at = 0; at < 4; at++) {
      snprintf(text, sizeof text, "fail %d of %ld.%ld", at, (long)now.tv_sec, now.tv_nsec);
      ask(token, "index.later", "null", text, out);
    }
  } else if (strstr(options, "worked")) {
    snprintf(text, sizeof text, "[{\"worked\":%ld}]", worked());
    answer(out, WEIR_DONE, "{}", text);
  } else if (strstr(options, "post-many")) {
    post_many(token, out);
  } else if (strstr(options, "replace-stale")) {
    replace(token, "\"stale\"", out);
  } else if (strstr(options, "replace-twice")) {
    if (!replace(token, "null", out)) replace(token, "\"stale\"", out);
  } else if (strstr(options, "spin")) {
    spin(60000);
  } else if (strstr(options, "print")) {
    for (int at = 0; at < 3000; at++) fprintf(stderr, "%0900d\n", at);
  }
}

static void call(uint64_t token, weir_slice function, weir_slice head, weir_slice body, weir_reply *out) {
  char name[64] = "", text[16 << 10] = "", settings[256] = "";
  memcpy(name, function.pointer, function.length);
  memcpy(text, head.pointer, head.length < sizeof text ? head.length : sizeof text - 1);
  memcpy(settings, body.pointer, body.length < sizeof settings ? body.length : sizeof settings - 1);
  if (!strcmp(name, "about.about")) {
    answer(out, WEIR_DONE, "{\"interfaces\":[\"collections\",\"summaries\"]}",
           "{\"name\":\"" NAME "\",\"version\":\"" VERSION "\",\"adapters\":[{\"name\":\"" NAME "\"}]}");
  } else if (!strcmp(name, "collections.describe")) {
    const char *busy = strstr(settings, "\"busy_ms\":");
    if (busy) spin(atol(busy + strlen("\"busy_ms\":")));
    answer(out, WEIR_DONE, "null", "{\"name\":\"things\",\"fields\":[{\"key\":\"id\",\"type\":\"integer\"}]}");
  } else if (!strcmp(name, "collections.configure")) {
    answer(out, WEIR_DONE, "null", "");
  } else if (!strcmp(name, "collections.read") || !strcmp(name, "collections.write")) {
    behave(token, text, out);
  } else if (!strcmp(name, "summaries.summarize")) {
    /* What it was asked comes back as a text, so that a test sees all of it. */
    answer(out, WEIR_DONE, strstr(text, "\"limit\":1") ? "{\"more\":true}" : "{\"more\":false}", text);
  } else {
    answer(out, WEIR_UNKNOWN, "null", "");
  }
}

static void release(weir_reply *reply) {
  free(reply->head.pointer);
  free(reply->body.pointer);
}

static const weir_table table = {WEIR_ABI, sizeof(weir_table), call, release};

const weir_table *weir_plugin_abi(uint32_t abi, const weir_table *ours) {
  host = ours;
  return abi == WEIR_ABI ? &table : NULL;
}

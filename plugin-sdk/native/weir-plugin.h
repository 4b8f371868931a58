/* A Weir plugin as a native library: version 1 of the interface.
 *
 * The library exports one symbol, `weir_plugin_abi`. The gateway calls it once, before anything else, with the version it
 * speaks and its own table, and gets the table of the library, or null where the library does not speak that version.
 * Both tables have the same form; each stays where it is as long as the process lives. A library is never unloaded.
 *
 * The functions have the names of the component interface (wit/0.1.2/weir-plugin.wit), `INTERFACE.FUNCTION`. A call has a
 * head, which is a JSON object or `null`, and a body of bytes; so has its reply. Texts and contents that may be large are
 * the body. Where a message has several, they follow each other in the body, and the head has their lengths in the same
 * order. Members of a head that one side does not know are ignored by it.
 *
 * what the library answers (`?` marks what may be null)
 *   function                head of the call, body                           head of the reply, body
 *   about.about             null                                             interfaces: ["collections", "tools", …]; the text
 *   collections.describe    adapter; the settings                            null; the shape
 *   collections.configure   collection, adapter, settings, shape             null
 *   collections.read        collection, conditions: [{column, comparison,    next?; the records
 *                           value}], order: [], columns: [], limit,
 *                           cursor?, options?
 *   collections.write       collection, verb, key?, record?, options?        null; the record
 *   summaries.summarize     collection, conditions: [{column, comparison,    more; the records
 *                           value}], groups: [[name, column, step?]],
 *                           measures: [[name, function, column?]],
 *                           having: [{column, comparison, value}],
 *                           order: [], limit, options?
 *   tools.configure         null; the settings                               null
 *   tools.definitions       null                                             null; the definitions
 *   tools.call              tool, context, resumed?, options?; arguments     kind, content?, requests?, state?, options?;
 *                                                                            the value, empty for none
 * what the gateway answers
 *   log.write               level, fields?; the message                      null
 *   progress.report         done, total?, message                            null
 *   progress.cancelled      null                                             cancelled
 *   random.bytes            length                                           null; the bytes
 *   sql.dialect             connection                                       dialect
 *   sql.query               connection, text, parameters, limit, options?    length, truncated; the records
 *   sql.query-many          statements: [as sql.query]                       answers: [{done: {length, truncated}} or
 *                                                                            {failed: error}]; the records
 *   sql.execute             as sql.query                                     changed
 *   http.send               connection, method, path, query: [[name,         status, headers: [[name, value]], length;
 *                           value]], headers, body? (its length), options?;  the body
 *                           the body
 *   http.send-many          requests: [as http.send]; the bodies             answers: [{done: as http.send} or
 *                                                                            {failed: error}]; the bodies
 *   files.stat              root, path                                       version, size
 *   files.read              root, path, offset, length                       null; the content
 *   files.replace           root, path, if_version?; the content             version
 *   files.list              root, prefix, cursor?                            paths: [], next?
 *   parts.read              root, path, parts: [[at, length]]                lengths: []; the parts
 *   parts.replace           root, path, if_version, edits: [[at, length,     version
 *                           length of the content]]; the contents
 *   index.find, .begin      source, version, column                          covers?
 *   index.finish            source, version, column                          null
 *   index.entries           name: {source, version, column}, from, to?,      entries: [[key, at, length]]; the keys
 *                           after?: [key, at, length], descending, limit;
 *                           the keys of from, to and after
 *   index.add               name, entries: [[key, at, length]], from, to;    null
 *                           the keys (`key`: the length of one)
 *   index.extend            source, old, new                                 null
 *   index.later             null; the work                                   null
 * The clock is the library's own.
 *
 * An error record is {code, message, field?, retry_after_ms?, details?}.
 */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_ABI 1

#define WEIR_DONE 0     /* head and body are the answer */
#define WEIR_FAILED 1   /* the head is an error record */
#define WEIR_PANICKED 2 /* the head is {message}; what was called is not called again */
#define WEIR_UNKNOWN 3  /* there is no such function */

/* Lent for the time of a call. */
typedef struct {
  const uint8_t *pointer;
  size_t length;
} weir_slice;

/* Handed over until `release` of the side that made it; `capacity` is that side's own. */
typedef struct {
  uint8_t *pointer;
  size_t length, capacity;
} weir_owned;

typedef struct {
  int32_t status;
  weir_owned head, body;
} weir_reply;

typedef struct {
  uint32_t abi;  /* WEIR_ABI */
  uint32_t size; /* bytes of the table: it may grow at its end */
  /* `token` is that of the call under way. What a library asks of the gateway, it asks with that token, on the thread that
   * was called and before the call comes back; anything else is refused. A library is called on one thread at a time for
   * each instance, and what it keeps by thread is one instance's. Neither side lets an exception through. */
  void (*call)(uint64_t token, weir_slice function, weir_slice head, weir_slice body, weir_reply *out);
  void (*release)(weir_reply *reply);
} weir_table;

/* The library's one symbol. */
const weir_table *weir_plugin_abi(uint32_t abi, const weir_table *host);

#endif

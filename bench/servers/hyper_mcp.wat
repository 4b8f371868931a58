;; A plugin of hyper-mcp that lists one tool and answers every call alike, without a look at its input.
;; `weir-bench` puts the JSON in, each filled up with spaces to whole words of eight bytes.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "LIST_JSON")
  (data (i32.const 8192) "CALL_JSON")
  (func $answer (param $from i32) (param $bytes i64) (result i32)
    (local $to i64) (local $done i64)
    (local.set $to (call $alloc (local.get $bytes)))
    (loop $word
      (call $store
        (i64.add (local.get $to) (local.get $done))
        (i64.load (i32.add (local.get $from) (i32.wrap_i64 (local.get $done)))))
      (local.set $done (i64.add (local.get $done) (i64.const 8)))
      (br_if $word (i64.lt_u (local.get $done) (local.get $bytes))))
    (call $output (local.get $to) (local.get $bytes))
    (i32.const 0))
  (func (export "list_tools") (result i32) (call $answer (i32.const 0) (i64.const LIST_BYTES)))
  (func (export "call_tool") (result i32) (call $answer (i32.const 8192) (i64.const CALL_BYTES))))

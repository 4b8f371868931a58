//! Tests what a language's own library does in a plugin: the clock, chance, what is printed, files, and an end of the program.

use std::fs;

use serde_json::json;
use weir_tests::Modern;

use super::Desk;

/// A language, where its source lies, and the source. `look` prints, and reports whether the clock and random numbers are
/// those of the gateway; `read` reads the file of a root.
const SOURCES: [(&str, &str, &str); 2] = [
    (
        "python",
        "app.py",
        r#"
import datetime
import logging
import random
import secrets
import sys
import time
import uuid
from weir_plugin import files, plugin, tool

print("printed while it is built")
logging.basicConfig()

@tool
def look() -> dict[str, bool]:
    print("a printed word")
    print("a word of error", file=sys.stderr)
    logging.warning("a logged word")
    print("a last word", end="")
    begun = time.monotonic()
    return {
        "now": datetime.datetime.now().timestamp() > 1_750_000_000,
        "later": time.monotonic() >= begun,
        "library": datetime.datetime.strptime("28.02.26", "%d.%m.%y").day == 28 and "bücher.example".encode("idna") == b"xn--bcher-kva.example"
            and asyncio.run(wait_for_both()) == [1, 2],
        "chance": secrets.token_hex() != secrets.token_hex() and uuid.uuid4() != uuid.uuid4(),
    }

@tool
def draw() -> float:
    return random.random()

@tool(requests=["files"])
def read() -> str:
    return files.read("root", "words.txt", 0, 100).decode()

@tool
def leave() -> None:
    sys.exit("a secret word")

@tool
def load() -> None:
    import no_such_module

@tool
def unpack() -> None:
    try:
        open("/words.txt")
    except FileNotFoundError:
        datetime.datetime.strptime("no day", "%d")

import asyncio

async def wait(number: int) -> int:
    await asyncio.sleep(0.01)
    return number

async def wait_for_both() -> list[int]:
    return await asyncio.gather(wait(1), wait(2))

import socket

@tool
def connect() -> None:
    socket.create_connection(("example.org", 80))

About, Tools = plugin("world", "0.1.0", look, draw, read, leave, load, unpack, connect)
"#,
    ),
    (
        "js",
        "plugin.js",
        r#"
import { boolean, files, map, number, plugin, text, tool } from "./sdk/weir.js";
console.log("printed while it is built");
const look = tool({ name: "look", returns: map(boolean()), run() {
  console.log("a printed word");
  console.error("a word of error");
  console.warn("a logged", "word");
  console.info({ last: "a last word" });
  const begun = performance.now();
  const word = new TextDecoder().decode(new TextEncoder().encode("b\u00fccher \u{1f44b}"));
  return { now: Date.now() > 1_750_000_000_000, later: performance.now() >= begun,
    library: new Date("2026-02-28").getUTCDate() === 28 && word === "b\u00fccher \u{1f44b}",
    chance: Math.random() !== Math.random() && crypto.randomUUID() !== crypto.randomUUID() };
} });
const draw = tool({ name: "draw", returns: number(), run: () => Math.random() });
const read = tool({ name: "read", requests: ["files"], returns: text(), run: () =>
  String.fromCharCode(...files.read("root", "words.txt")) });
const leave = tool({ name: "leave", run: () => process.exit("a secret word") });
const load = tool({ name: "load", run: () => require("no_such_module") });
const unpack = tool({ name: "unpack", requests: ["files"], run: () => void files.replace("root", "words.txt", "a text") });
const connect = tool({ name: "connect", run: () => void fetch("https://example.org/") });
export const { about, tools } = plugin({ name: "world", version: "0.1.0", tools: [look, draw, read, leave, load, unpack, connect] });
"#,
    ),
];

/// The log lines of the tools that fail, in the order of the sources.
const REASONS: [[(&str, &str); 4]; 2] = [
    [
        (
            "leave",
            "SystemExit: a secret word (app.py, line 39, in leave)",
        ),
        (
            "load",
            "No module named 'no_such_module': there are no files when a tool runs, so a module is imported at the head of `app.py` (app.py, line 43, in load)",
        ),
        (
            "unpack",
            "time data 'no day' does not match format '%d' (app.py, line 50, in unpack)",
        ),
        (
            "connect",
            "a plugin opens no sockets: call `http.send` of `weir_plugin`, with a connection that its operator grants (app.py, line 65, in connect)",
        ),
    ],
    [
        ("leave", "process is not defined"),
        ("load", "require is not defined"),
        ("unpack", "the content is bytes"),
        (
            "connect",
            "a plugin has no `fetch`: call `http.send`, with a connection that its operator grants",
        ),
    ],
];

#[tokio::test]
async fn the_library_of_a_language_works_in_a_plugin() {
    let desk = Desk::new("world");
    for ((language, source, text), reasons) in SOURCES.into_iter().zip(REASONS) {
        let name = &format!("world-{language}");
        let folder = desk.begin(name, language, "tools");
        fs::write(folder.join(source), text).expect("the source is written");
        fs::create_dir(folder.join("files")).expect("a root");
        fs::write(folder.join("files/words.txt"), "some words").expect("a file");
        let config = "[connections.root]\nkind = \"files\"\npath = \"files\"\nwrite = true\n[plugins.world]\ndev = true\n\
                      [plugins.world.grants]\nroot = \"write\"\n";
        fs::write(folder.join("weir.toml"), config).expect("the configuration is written");
        desk.succeed(name, &["plugin", "build"]);
        // Each process has its own instance.
        let drawn = [(); 2].map(|()| desk.succeed(name, &["call", "draw"]));
        assert_ne!(drawn[0], drawn[1], "{language}");
        let gateway = desk.serve(name);
        let client = Modern::new(gateway.url());
        let looked = client.call_listening("look", json!({})).await;
        assert_eq!(
            looked.result()["structuredContent"],
            json!({ "now": true, "later": true, "library": true, "chance": true }),
            "{language}: {looked:?}"
        );
        // What a library prints may hold a secret, so only the log has it.
        assert_eq!(looked.messages.len(), 1, "{language}: {looked:?}");
        for printed in [
            "a printed word",
            "a word of error",
            "a logged word",
            "a last word",
        ] {
            gateway.wait_for_log(printed);
        }
        let read = client.call("read", json!({})).await;
        assert_eq!(
            read["structuredContent"],
            json!({ "result": "some words" }),
            "{language}: {read}"
        );
        for (tool, reason) in reasons {
            let answer = client.call_listening(tool, json!({})).await;
            let reply = &answer.result()["structuredContent"];
            assert_eq!(
                reply["code"], "plugin_failed",
                "{language}: {tool}: {reply}"
            );
            assert_eq!(answer.messages.len(), 1, "{language}: {answer:?}");
            gateway.wait_for_log(reason);
        }
        let log = gateway.log();
        for foreign in ["weir.js", "globals.js", "__init__.py", "printed while"] {
            assert!(!log.contains(foreign), "{language}: {foreign}: {log}");
        }
    }
}

/// An adapter in JavaScript is written against the interface itself, and has what a tool has of the library.
#[tokio::test]
async fn an_adapter_in_javascript_prints_and_draws() {
    let desk = Desk::new("drawing");
    let folder = desk.begin("drawing", "js", "collection");
    let source = fs::read_to_string(folder.join("plugin.js")).expect("the template's");
    let drawing = source
        .replacen("square: number * number }", "square: drawn() }", 1)
        .replacen(
            "const SHAPE",
            "console.log(\"printed while it is built\", Math.random());\n\
             const drawn = () => {\n  console.warn(\"a printed\", { word: crypto.randomUUID() });\n  \
             return Math.floor(Math.random() * 2 ** 40);\n};\nconst SHAPE",
            1,
        );
    fs::write(folder.join("plugin.js"), drawing).expect("the source is written");
    desk.succeed("drawing", &["plugin", "build"]);
    let call = ["call", "get_number", "--number", "7"];
    // Each process has its own instance.
    let drawn = [(); 2].map(|()| desk.succeed("drawing", &call));
    assert_ne!(drawn[0], drawn[1]);
    let gateway = desk.serve("drawing");
    let client = Modern::new(gateway.url());
    let read = client.call("get_number", json!({ "number": 7 })).await;
    assert_ne!(read["isError"], true, "{read}");
    gateway.wait_for_log("a printed {");
    let log = gateway.log();
    assert!(!log.contains("printed while"), "{log}");
}

"""Prints the source files that one call runs through, from the socket to SQLite and back, in the order in which it reaches them.

    python3 tests/tidy/files_of_a_call.py TARGET/debug/weir

In a development build no function of the workspace is inlined, so that all files are counted; of a released program those are left out
whose functions are all inlined. Each function gets a breakpoint, which is removed when it is met, while a gateway serves a table. What
is met in each of five calls is what a call runs, without what is also met while nothing is called. The adapter runs as WebAssembly and is
not counted. Needs Linux on x86-64, nm and addr2line.
"""

import collections
import concurrent.futures
import ctypes
import http.client
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 5
SEIZE, INTERRUPT, GETREGS, SETREGS, CONT = 0x4206, 0x4207, 12, 13, 7
TRACE_CLONE, WAIT_ALL, RIP = 8, 0x40000000, 16
SOURCE = re.compile(r"(?:^|/)((?:gateway|contracts|protocol|cli|plugins|plugin-sdk)/(?:[\w-]+/)*[\w-]+\.rs):\d+")

CONTRACT = """
contract: shop
collections:
  items:
    adapter: sql
    settings: { connection: db, table: items }
    columns: [id, name, price]
    key: [id]
tools:
  - tool: lookup_item
    description: Returns the item with a number.
    verb: lookup
    collection: items
    fields:
      - { name: id, type: number, required: true }
"""

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def functions(program):
    """Returns the addresses of the functions of the workspace."""
    listed = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0], 16) for line in listed.splitlines() if "weir" in line and line.split()[1] in "tT"}


def crates():
    """Returns the folder with the sources of each crate, by the crate's name in symbols."""
    folders = {"weir": "gateway/src"}
    for manifest in ROOT.glob("**/Cargo.toml"):
        if name := re.search(r'^name = "(weir-[\w-]+)"', manifest.read_text(), re.M):
            folders[name[1].replace("-", "_")] = str((manifest.parent / "src").relative_to(ROOT))
    return folders


def named_source(name, folders):
    """Returns the file of the module that the name of a function begins with."""
    path = re.search(r"\b(weir(?:_\w+)?)((?:::\w+)+)", name)
    if not path or path[1] not in folders or name.startswith("core::ptr::drop_in_place"):
        return None
    modules = path[2].split("::")[1:]
    files = ["/".join([folders[path[1]], *modules[:depth]]) + ".rs" for depth in range(len(modules), 0, -1)]
    return next((file for file in files if (ROOT / file).exists()), f"{folders[path[1]]}/lib.rs")


def sources(program, addresses):
    """Returns the source file of each function, by the lines of the program or else by the function's name."""
    asked = "\n".join(map(hex, addresses))
    places = subprocess.run(["addr2line", "-e", program], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    listed = subprocess.run(["nm", "--defined-only", "--demangle", program], capture_output=True, text=True, check=True).stdout
    names = {int(line.split()[0], 16): line.split(" ", 2)[2] for line in listed.splitlines()}
    folders = crates()
    found = []
    for address, place in zip(addresses, places, strict=True):
        by_line = SOURCE.search(place)
        if by_line:
            found.append(by_line[1])
        elif place.endswith((":?", ":0")):
            found.append(named_source(names[address], folders))
    return [file for file in found if file]


class Tracer:
    """Threads that are traced, and the breakpoints in them."""

    def __init__(self, process, program):
        mapped = pathlib.Path(f"/proc/{process}/maps").read_text().splitlines()
        mapped = [line for line in mapped if line.endswith(os.path.realpath(program))]
        self.base = min(int(line.split("-")[0], 16) - int(line.split()[2], 16) for line in mapped)
        self.functions = {self.base + address for address in functions(program)}
        self.armed, self.met = {}, []
        self.memory = os.open(f"/proc/{process}/mem", os.O_RDWR)
        for thread in os.listdir(f"/proc/{process}/task"):
            assert ptrace(SEIZE, int(thread), None, TRACE_CLONE) == 0, os.strerror(ctypes.get_errno())
            ptrace(INTERRUPT, int(thread), None, None)

    def arm(self):
        for address in self.functions - self.armed.keys():
            self.armed[address] = os.pread(self.memory, 1, address)
            os.pwrite(self.memory, b"\xcc", address)

    def handle(self, thread, status):
        """Goes on with a thread that has stopped."""
        number = os.WSTOPSIG(status)
        if status >> 16 or number != signal.SIGTRAP:
            ptrace(CONT, thread, None, None if status >> 16 else number)
            return
        registers = (ctypes.c_ulonglong * 27)()
        ptrace(GETREGS, thread, None, registers)
        address = registers[RIP] - 1
        if address in self.functions:
            before = self.armed.pop(address, None)
            if before:
                os.pwrite(self.memory, before, address)
                self.met.append(address - self.base)
            registers[RIP] = address
            ptrace(SETREGS, thread, None, registers)
        ptrace(CONT, thread, None, None)

    def run(self, work):
        """Handles what stops until the work of another thread is done. Returns what was met meanwhile."""
        self.met = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            worker = pool.submit(work)
            while not worker.done():
                thread, status = os.waitpid(-1, WAIT_ALL | os.WNOHANG)
                if thread and os.WIFSTOPPED(status):
                    self.handle(thread, status)
                elif not thread:
                    time.sleep(0.0002)
            worker.result()
        return list(self.met)


def start(program, folder):
    """Serves a table of SQLite to an agent with a key. Returns the process, its port and the key."""
    database = sqlite3.connect(folder / "shop.db")
    database.executescript("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price INTEGER); INSERT INTO items VALUES (1, 'lamp', 12);")
    (folder / "contracts").mkdir()
    (folder / "contracts/shop.yaml").write_text(CONTRACT)
    (folder / "weir.toml").write_text(
        '[folders]\ncontracts = "contracts"\nstate = "state"\n[connections.db]\nkind = "sqlite"\npath = "shop.db"\n'
        '[plugins.sql.grants]\ndb = "read"\n'
    )
    words = [program, "serve", "--listen", "127.0.0.1:0"]
    gateway = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True)
    for line in gateway.stderr:
        if found := re.search(r"listening on http://127.0.0.1:(\d+)", line):
            threading.Thread(target=collections.deque, args=(gateway.stderr, 0), daemon=True).start()
            words = [program, "keys", "create", "--agent", "ann"]
            made = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
            return gateway, int(found[1]), made.stdout.strip()
    raise SystemExit("the gateway does not start")


def main(program):
    program = os.path.realpath(program)
    with tempfile.TemporaryDirectory() as folder:
        gateway, port, key = start(program, pathlib.Path(folder))
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def call():
            version = "2026-07-28"
            meta = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
            params = {"name": "lookup_item", "arguments": {"id": 1}, "_meta": meta}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            headers = {
                "content-type": "application/json", "accept": "application/json, text/event-stream", "authorization": f"Bearer {key}",
                "mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "lookup_item",
            }
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse().read().decode()
            assert "lamp" in answer, answer

        try:
            for _ in range(3):
                call()
            tracer = Tracer(gateway.pid, program)
            tracer.arm()
            idle = set(tracer.run(lambda: time.sleep(3)))
            rounds = []
            for _ in range(ROUNDS):
                tracer.arm()
                rounds.append(tracer.run(call))
        finally:
            gateway.kill()
    always = set.intersection(*map(set, rounds)) - idle
    met = sources(program, [address for address in rounds[0] if address in always])
    files = collections.Counter(met)
    for file, count in files.items():
        print(f"{count:>4}  {file}")
    folders = collections.Counter(re.match(r"gateway/src/\w+|gateway/[\w-]+|[\w-]+/[\w-]+", file)[0] for file in files)
    print(f"{len(files)} files, {len(met)} functions: " + ", ".join(f"{name} {count}" for name, count in folders.most_common()))


main(*sys.argv[1:])

"""What Python's own library needs of the outside and does not find in a component: a loop for `asyncio`, and words for sockets.

Nothing is imported here that the plugin's author has not imported: each module makes a component larger.
"""

import sys
import time

NEVER = "the tool waits for something that never comes"
NO_SOCKETS = "a plugin opens no sockets: call `http.send` of `weir_plugin`, with a connection that its operator grants"
_OF_SOCKETS = (
    "create_connection", "create_server", "fromfd", "getaddrinfo", "gethostbyaddr", "gethostbyname", "gethostbyname_ex", "getnameinfo",
    "socketpair",
)


def prepare():
    """Called when the tools are put together, after the imports at the head of the author's files."""
    if "asyncio" in sys.modules:
        _replace_loops(sys.modules["asyncio"])
    if "socket" in sys.modules:
        _refuse_sockets(sys.modules["socket"])


def run(coroutine):
    """The result of a coroutine. Calls of a plugin have answered before they return, so only time can wake it later."""
    if "asyncio" in sys.modules:
        return sys.modules["asyncio"].run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError(NEVER)


def _replace_loops(asyncio):
    """Its loops wait at a pair of sockets, which a component does not have."""

    class Loop(asyncio.BaseEventLoop):
        def __init__(self):
            super().__init__()
            self._selector = self

        def select(self, timeout):
            """Waits as long as no task can go on."""
            if timeout is None:
                raise RuntimeError(NEVER)
            time.sleep(max(timeout, 0))
            return ()

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

        def run_in_executor(self, executor, function, *arguments):
            """Runs it immediately: there are no threads."""
            future = self.create_future()
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
            return future

    asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
    asyncio.EventLoop = asyncio.SelectorEventLoop = Loop


def _refuse_sockets(socket):
    """Made of nothing, a socket would end the call without a word of Python's."""

    def refuse(*_, **__):
        raise OSError(NO_SOCKETS)

    socket.socket.__init__ = refuse
    for name in _OF_SOCKETS:
        if hasattr(socket, name):
            setattr(socket, name, refuse)

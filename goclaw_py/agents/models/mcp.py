"""Tools of MCP servers (SPEC AGENT-6). Heavy imports (40 MB), only with servers.

A server is started or connected for the first run, and kept. The tools of a server that cannot be
reached are missing; later runs try again, at growing intervals.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import Context
from dataclasses import replace
from typing import TextIO

from fastmcp.client.transports import ClientTransport, StdioTransport
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, Tool
from pydantic import ValidationError
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.exceptions import ToolFailed as ToolRefused
from pydantic_ai.mcp import MCPToolset

from goclaw_py.agents.command.process import MARK, end_marked
from goclaw_py.agents.models.mcp_texts import (
    NOT_IN_NAMES,
    SERVER_KEEPS,
    failure_of,
    name_of,
    text_of,
)
from goclaw_py.agents.models.responses.mcp_messages import (
    UNREADABLE,
    ServerLog,
    limited_transport,
    reading,
)
from goclaw_py.agents.models.scrub import scrub
from goclaw_py.agents.spec import McpServer
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.run_events import Waiting
from goclaw_py.core.time.texts import rough
from goclaw_py.runs.agent_loop import Emit
from goclaw_py.runs.toolbox import ToolSpec

_log = logging.getLogger(__name__)

# At its import a library puts its log lines on the terminal and hides them from our handlers. They
# log addresses, which may hold secrets (SPEC SEC-2), and each message that they cannot read, with
# all that is in it. Failures are logged here.
for _theirs in map(logging.getLogger, ("fastmcp", "mcp", "client")):
    _theirs.handlers.clear()
    _theirs.propagate = True
    _theirs.setLevel(logging.CRITICAL)

PATIENCE_S = 10.0
"""Seconds that runs wait for a starting server. It continues to start after that."""

START_S = 60.0
"""Seconds until a server must respond: some install themselves first."""

RETURN_S = 60.0
"""Seconds that a continued run waits for a server that it had used."""

TELL_S = 3.0
"""Seconds after which people see what a continued run waits for."""

ANSWER_S = 5.0
CLOSE_S = 15.0
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 60.0

KEY = "goclaw-py/idempotency-key"
"""The field of ``_meta`` of a call with its idempotency key."""

MOST_TOOLS = 100
"""The number of a server's tools that a model gets."""

MOST_DESCRIPTION = 4_000
"""The length of a tool's description in characters."""

_ENVIRONMENT = ("LANG", "LC_ALL", "TMPDIR", "TZ")
"""Variables that programs inherit besides those that the library passes on (SPEC SEC-4).

The library passes on HOME, LOGNAME, PATH, SHELL, TERM and USER.
"""

_ERRORS_KEPT = 2_000
_SHOWN = 300


class Servers:
    """The MCP servers of an agent, for any number of runs at once."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = [_Server(name, spec) for name, spec in servers.items()]

    async def tools(self, called: Collection[str] = (), emit: Emit | None = None) -> ServerTools:
        """Return the tools of all servers that respond within ``PATIENCE_S`` of their start.

        Waits longer for servers of tools that the run has ``called`` before it was interrupted,
        and emits that after some seconds.
        """
        used = [server for server in self._servers if any(map(server.may_have, called))]
        with _reporting_wait(used, emit):
            await _ready(self._servers)
            for server in used:
                await server.until_back()
        for server in self._servers:
            await server.refresh()
        return ServerTools(self._servers)

    async def close(self) -> None:
        """End all programs and connections."""
        await asyncio.gather(*(server.close() for server in self._servers))


class ServerTools:
    """The toolbox of a run: the tools of all servers, each under its server's name.

    The names are valid for every model provider.
    """

    def __init__(self, servers: Sequence[_Server]) -> None:
        self.missing = tuple(server.name for server in servers if server.tools is None)
        """The servers that cannot be used now."""
        self._called: dict[str, tuple[_Server, str]] = {}
        specs = []
        for server in servers:
            for tool in server.tools or ():
                name = name_of(server.name, tool.name, self._called)
                self._called[name] = server, tool.name
                specs.append(_spec(name, tool, trusted=server.is_trusted))
        self._specs = tuple(specs)

    @property
    def guidance(self) -> tuple[str, ...]:
        """Return nothing: servers describe their tools."""
        return ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools."""
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        """See ``Toolbox``. The server validates the arguments."""
        if name not in self._called:
            raise ToolFailed(f"there is no tool {name!r}")
        server, tool = self._called[name]
        return await server.call(tool, arguments, key)


class _Server:
    """A server, with a task that holds its connection."""

    def __init__(self, name: str, spec: McpServer) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] | None = None
        """The allowed tools; None without a connection."""
        self._spec = spec
        self._secrets = _secrets(spec)
        self._connection: MCPToolset[None] | None = None
        self._living: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        """Set once it is known whether the server is available."""
        self._look = asyncio.Event()
        """Set when the connection may have ended."""
        self._is_lost = False
        self._is_closing = False
        self._has_told_of_more = False
        self._patient_until = 0.0
        self._again_at = 0.0
        self._pause_s = FIRST_PAUSE_S

    def start(self) -> None:
        """Start to connect, unless that was done, or has just failed."""
        if self._living is not None and not self._living.done():
            return
        now = asyncio.get_running_loop().time()
        if now < self._again_at:
            return
        self._patient_until = now + PATIENCE_S
        self._known.clear()
        self._look.clear()
        self._is_lost = False
        # In its own context: it outlives the run that starts it.
        living = asyncio.create_task(self._live(), name=f"mcp {self.name}", context=Context())
        self._living = living

    async def until_known(self) -> None:
        """Wait until it is known whether a starting server is available.

        A hanging server delays the runs of its first ``PATIENCE_S``, and no later ones.
        """
        if self._is_lost and self._living is not None and not self._living.done():
            # It lost its connection a moment ago, and is still ending its program.
            await asyncio.wait([self._living], timeout=PATIENCE_S)
            self.start()
        if self._living is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._patient_until):
                    await self._known.wait()

    async def until_back(self) -> None:
        """Wait up to ``RETURN_S`` until the server is available, and start it again if it fails."""
        now = asyncio.get_running_loop().time
        end = now() + RETURN_S
        while not self.is_available and (left := end - now()) > 0:
            self.start()
            if self._living is None or self._living.done():
                await asyncio.sleep(min(max(self._again_at - now(), 0.0) + 0.01, left))
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._known.wait()
            if not self.is_available:
                await asyncio.wait([self._living], timeout=end - now())

    @property
    def is_trusted(self) -> bool:
        """Return whether what it says about its tools counts."""
        return self._spec.trusted

    @property
    def is_available(self) -> bool:
        """Return whether it is connected."""
        return self.tools is not None

    def may_have(self, tool: str) -> bool:
        """Return whether a tool's name may be that of one of this server's tools."""
        return tool.startswith(NOT_IN_NAMES.sub("_", self.name)[:SERVER_KEEPS])

    async def refresh(self) -> None:
        """Update the tools, if the server has said that they changed."""
        connection = self._connection
        if connection is not None:
            try:
                async with asyncio.timeout(ANSWER_S):
                    tools = self._usable(await connection.list_tools())
            except Exception:
                # A boundary, as in ``call``.
                self._lose(connection)
            else:
                if self._connection is connection:
                    self.tools = tools

    async def call(self, tool: str, arguments: Mapping[str, object], key: str) -> str:
        """Call a tool, exactly once."""
        await _ready([self])
        connection = self._connection
        if connection is None:
            raise ToolFailed(f"the server {self.name} is not available now")
        limit = asyncio.timeout(self._spec.call_timeout_s)
        try:
            meta = {KEY: key} if key else None
            async with limit:
                given = await connection.direct_call_tool(tool, dict(arguments), metadata=meta)
        except ToolRefused as error:
            raise ToolFailed(failure_of(error.message, self._secrets)) from error
        except ModelRetry as error:
            # Servers use the number of a closed connection for errors of their own.
            if _is_closed(error.__cause__) and not await _answers(connection):
                raise self._broken(connection, error) from error
            raise ToolFailed(failure_of(error.message, self._secrets)) from error
        except TimeoutError as error:
            if not limit.expired():
                raise self._broken(connection, error) from error
            within = rough(self._spec.call_timeout_s)
            raise ToolFailed(
                f"the server {self.name} did not answer within {within}: "
                "nobody knows whether it has done this"
            ) from error
        except ValidationError as error:
            # Other calls of the same server may be in progress, and its connection is well.
            raise ToolFailed(UNREADABLE) from error
        except Exception as error:
            # A boundary: whatever the transports of other people raise.
            raise self._broken(connection, error) from error
        return text_of(given)

    async def close(self) -> None:
        """Close the connection, without the protocol's farewell if the server may be gone."""
        self._is_closing = True
        self._look.set()
        if self._living is None:
            return
        if self._known.is_set():
            await asyncio.wait([self._living], timeout=CLOSE_S)
        self._living.cancel()
        await asyncio.wait([self._living], timeout=CLOSE_S)

    def _broken(self, connection: MCPToolset[None], error: Exception) -> ToolFailed:
        self._lose(connection)
        why = scrub(str(error), self._secrets)
        return ToolFailed(
            f"the connection to the server {self.name} broke ({why}): "
            "nobody knows whether it has done this"
        )

    def _lose(self, connection: MCPToolset[None]) -> None:
        # There may be a new one by now, that is well.
        if connection is self._connection:
            self.tools = self._connection = None
            self._is_lost = True
            self._look.set()

    async def _live(self) -> None:
        """Connect, and hold the connection until it ends or is closed."""
        errors = _ErrorOutput(self.name, self._secrets, self._look.set)
        messages = ServerLog(self.name, self._secrets)
        cause = ""
        try:
            async with self._connected(errors, messages) as connection:
                async with asyncio.timeout(START_S):
                    self.tools = self._usable(await connection.list_tools())
                self._connection = connection
                self._pause_s = FIRST_PAUSE_S
                self._known.set()
                await self._until_over(connection)
                cause = "the connection has ended"
        except Exception as error:
            # A boundary: whatever the transports of other people raise, when a server is not there
            # and also when a connection is closed that has ended by itself.
            if not cause:
                cause = f"{type(error).__name__}: {error}"
                self._again_at = asyncio.get_running_loop().time() + self._pause_s
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        finally:
            self.tools = self._connection = None
            self._known.set()
            messages.close()
        if not self._is_closing:
            facts = {
                "server": self.name,
                "error": scrub(cause, self._secrets),
                "stderr": errors.text,
            }
            _log.warning("mcp_server_failed", extra=facts)

    async def _until_over(self, connection: MCPToolset[None]) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            # A server that is at work may not respond: a shutdown does not wait for it.
            if self._is_closing or self._is_lost or not await _answers(connection):
                return

    @asynccontextmanager
    async def _connected(
        self, errors: _ErrorOutput, messages: ServerLog
    ) -> AsyncIterator[MCPToolset[None]]:
        async with AsyncExitStack() as stack:
            stack.enter_context(reading(self.name))
            if self._spec.url:
                remote = limited_transport(self.name, self._spec.url, self._spec.headers)
                yield await stack.enter_async_context(_toolset(self.name, remote, messages))
                return
            file = await stack.enter_async_context(errors.opened())
            program, *arguments = self._spec.command
            mark = f"mcp-{uuid.uuid4().hex}"
            # After the end of the program: end everything that it has started.
            stack.push_async_callback(end_marked, mark)
            inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
            transport = StdioTransport(
                program,
                arguments,
                env={**inherited, **self._spec.env, MARK: mark},
                keep_alive=False,
                log_file=file,
            )
            connection = await stack.enter_async_context(_toolset(self.name, transport, messages))
            # The program holds the other end by now. When it ends, so does what it says.
            file.close()
            yield connection

    def _usable(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        wanted = self._spec.tools
        usable = tuple(tool for tool in tools if not wanted or tool.name in wanted)
        if len(usable) > MOST_TOOLS and not self._has_told_of_more:
            self._has_told_of_more = True
            facts = {"server": self.name, "tools": len(usable), "offered": MOST_TOOLS}
            _log.warning("mcp_tools_left_out", extra=facts)
        return usable[:MOST_TOOLS]


class _ErrorOutput:
    """Logs the standard error of a program, and keeps its end."""

    def __init__(self, server: str, secrets: Collection[str], ended: Callable[[], None]) -> None:
        self._server = server
        self._secrets = secrets
        self._ended = ended
        self._kept = ""

    @property
    def text(self) -> str:
        """Return its end, without secrets."""
        return scrub(self._kept.strip()[-_SHOWN:], self._secrets)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[TextIO]:
        """Open a file for the program, which the caller closes."""
        reading, writing = os.pipe()
        lines = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reading, "rb", 0)
        )
        task = asyncio.create_task(self._read(lines), name=f"mcp {self._server} stderr")
        file = os.fdopen(writing, "w")
        try:
            yield file
        finally:
            file.close()
            task.cancel()
            transport.close()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while data := await lines.read(_ERRORS_KEPT):
            text = data.decode(errors="replace")
            self._kept = (self._kept + text)[-_ERRORS_KEPT:]
            facts = {"server": self._server, "text": scrub(text, self._secrets)}
            _log.debug("mcp_server_output", extra=facts)
        self._ended()


async def _ready(servers: Sequence[_Server]) -> None:
    for server in servers:
        server.start()
    for server in servers:
        await server.until_known()


@contextmanager
def _reporting_wait(servers: Sequence[_Server], emit: Emit | None) -> Iterator[None]:
    """Emit after ``TELL_S`` that a run waits for servers, and then that it does no longer."""
    if emit is None or not servers:
        yield
        return
    waiting = Waiting(f"the tools of {', '.join(server.name for server in servers)}")
    timer = asyncio.get_running_loop().call_later(TELL_S, emit, waiting)
    try:
        yield
    finally:
        timer.cancel()
        emit(replace(waiting, is_over=True))


def _toolset(name: str, transport: ClientTransport, messages: ServerLog) -> MCPToolset[None]:
    return MCPToolset(
        transport,
        id=name,
        init_timeout=START_S,
        read_timeout=None,  # each call has a limit of its own
        tool_error_behavior="failed",
        log_handler=messages.on_message,
    )


async def _answers(connection: MCPToolset[None]) -> bool:
    try:
        async with asyncio.timeout(ANSWER_S):
            await connection.client.ping()
    except MCPError as error:
        # Servers of the newest protocol know no ping, and say so.
        return not _is_closed(error)
    except Exception:
        # A boundary, as in ``_Server.call``.
        return False
    return True


def _is_closed(error: BaseException | None) -> bool:
    return isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED


def _secrets(spec: McpServer) -> tuple[str, ...]:
    # ``Bearer KEY`` is a secret, and so is the key alone.
    words = (word for value in spec.headers.values() for word in value.split()[1:])
    return (*spec.env.values(), *spec.headers.values(), *words, spec.url)


def _spec(name: str, tool: Tool, *, trusted: bool) -> ToolSpec:
    # A tool without side effects needs no approval and may be called twice. A server could claim
    # that of any tool, and change its mind at any time.
    hints = tool.annotations if trusted else None
    is_harmless = hints is not None and hints.read_only_hint is True
    is_idempotent = hints is not None and hints.idempotent_hint is True
    description = (tool.description or "")[:MOST_DESCRIPTION]
    return ToolSpec(
        name,
        description,
        tool.input_schema,
        side_effects=not is_harmless,
        idempotent=is_idempotent,
    )

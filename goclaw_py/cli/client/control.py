"""The gateway as seen from another process: ``Control`` and ``Terminals`` over its socket."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx

from goclaw_py.chat.terminals import ChatEvent, Terminals, UploadedFile
from goclaw_py.cli.client.calls import Params, Remote, call, query, remote, segment
from goclaw_py.core.errors import (
    BadUsageQuery,
    GoclawError,
    NoGateway,
    NotAccepted,
    StoreUnavailable,
)
from goclaw_py.core.ids import AgentName
from goclaw_py.operations.access.operations import Access
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.audit.operations import AuditEntries
from goclaw_py.operations.control import Control
from goclaw_py.operations.deliveries.operations import Deliveries
from goclaw_py.operations.heartbeats import operations as heartbeats
from goclaw_py.operations.jobs import operations as jobs
from goclaw_py.operations.lanes.operations import Lanes
from goclaw_py.operations.nodes.operations import Nodes
from goclaw_py.operations.people.operations import People
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.operations import Sessions, Submitted
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.operations.usage.operations import UsageReports
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.web.api import wire
from goclaw_py.web.api.error_json import error_of
from goclaw_py.web.command_line import command_headers
from goclaw_py.web.sockets import short_path

TIMEOUT_S = 30.0
"""Timeout of a request. A chat message is answered only after its database commit."""

STREAM_SILENCE_S = 3 * wire.PING_S
"""An event stream without any data for this long is considered broken."""

ATTACH_S = 10.0
"""How long to wait for the terminal to be attached before a message is sent."""

_LAST_LOOK_S = 1.0
_CONFIRM_AFTER_S = (0.0, 0.2, 1.0)


class RemoteControl(Remote):
    """Use it in ``async with``. Every method raises ``NoGateway`` if no gateway answers."""

    def __init__(self, path: Path) -> None:
        """``path`` is the gateway's socket."""
        self._path = path
        self._exits = AsyncExitStack()
        self._confirming: set[asyncio.Task[None]] = set()
        self._attached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._client: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        name = self._exits.enter_context(short_path(self._path))
        # A local socket needs no TLS, and loading the certificates takes longer than most requests.
        transport = httpx.AsyncHTTPTransport(uds=name, verify=False)
        # Ignore proxy settings of the environment for a local socket.
        self._client = await self._exits.enter_async_context(
            httpx.AsyncClient(
                transport=transport,
                base_url="http://goclaw",
                timeout=TIMEOUT_S,
                trust_env=False,
                headers=command_headers(),
            )
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._confirming:
            await asyncio.wait(self._confirming)
        await self._exits.aclose()

    # ------------------------------------------------------------------ Control

    @cached_property
    def jobs(self) -> jobs.JobService:
        """Return the operations on jobs."""
        return remote(jobs.JobService, self.send, jobs.refused)

    @cached_property
    def heartbeats(self) -> heartbeats.HeartbeatService:
        """Return the operations on heartbeats."""
        return remote(heartbeats.HeartbeatService, self.send, heartbeats.refused)

    @cached_property
    def settings(self) -> SettingsService:
        """Return the operations on settings."""
        return remote(SettingsService, self.send)

    @cached_property
    def access(self) -> Access:
        """Return the operations on sign-ins and tokens."""
        return remote(Access, self.send)

    @cached_property
    def audit(self) -> AuditEntries:
        """Return the operations on the audit log."""
        return remote(AuditEntries, self.send)

    @cached_property
    def approvals(self) -> Approvals:
        """Return the operations on approvals."""
        return remote(Approvals, self.send)

    @cached_property
    def deliveries(self) -> Deliveries:
        """Return the operations on messages."""
        return remote(Deliveries, self.send)

    @cached_property
    def nodes(self) -> Nodes:
        """Return the operations on nodes."""
        return remote(Nodes, self.send)

    @cached_property
    def sessions(self) -> Sessions:
        """Return the operations on sessions."""
        return remote(Sessions, self.send, send_message=self._send_message)

    async def _send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        # The route is of another program, which has other names and another answer.
        path = f"/api/sessions/{segment(key)}/messages"
        raw = await self.send("POST", path, {"prompt": text}, {"queue": queue})
        sent = wire.read(dict[str, Any], raw)
        return Submitted(sent["sessionId"], sent["runId"])

    @cached_property
    def people(self) -> People:
        """Return the operations on people."""
        return remote(People, self.send)

    @cached_property
    def runs(self) -> Runs:
        """Return the operations on runs."""
        return remote(Runs, self.send)

    @cached_property
    def lanes(self) -> Lanes:
        """Return the operations on lanes."""
        return remote(Lanes, self.send)

    @cached_property
    def usage(self) -> UsageReports:
        """Return the operations on usage."""
        return remote(UsageReports, self.send, _bad_usage)

    why = call(Control.why, "GET /api/why")

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """Yield live events of runs. Raises ``NoGateway`` when the gateway shuts down."""
        params = query(session=session)
        headers = {} if after is None else {"Last-Event-ID": after}
        reader = wire.EventReader(wire.LIVE_EVENTS)
        with _translated():
            async with AsyncExitStack() as exits:
                response = await self._open(exits, "/api/runs/events", params, headers)
                async for chunk in while_alive(response.aiter_bytes()):
                    for event in reader.feed(chunk):
                        yield event
        raise NoGateway("the gateway has shut down or closed the connection")

    # ------------------------------------------------------------------ Terminals

    async def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """Yield events for one terminal. Raises ``NoGateway`` when the gateway shuts down."""
        reader = wire.EventReader(wire.CHAT_EVENTS)
        with _translated():
            async with AsyncExitStack() as exits:
                response = await self._open(exits, f"/api/chat/{segment(chat)}/events")
                try:
                    async for chunk in while_alive(response.aiter_bytes()):
                        # The first bytes mean that the terminal is attached.
                        self._attached[chat].set()
                        for event in reader.feed(chunk):
                            yield event
                finally:
                    self._attached[chat].clear()
        raise NoGateway("the gateway has shut down or closed the connection")

    async def say(
        self,
        chat: str,
        message_id: str,
        text: str,
        *,
        agent: AgentName | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> None:
        """Send a line once the terminal is attached, because otherwise the answer could be lost."""
        try:
            async with asyncio.timeout(ATTACH_S):
                await self._attached[chat].wait()
        except TimeoutError:
            raise StoreUnavailable("this terminal is not connected to the gateway yet") from None
        path = f"/api/chat/{segment(chat)}/messages"
        body: dict[str, object] = {"message_id": message_id, "text": text}
        if agent is not None:
            body["agent"] = agent
        if files:
            body["files"] = [asdict(one) for one in files]
        await self.send("POST", path, body)

    press = call(Terminals.press, "POST /api/chat/{chat}/press")

    def confirm(self, receipt: str) -> None:
        """Confirm that a message was shown; ``async with`` waits for that at the end."""
        task = asyncio.ensure_future(self._confirm(receipt))
        self._confirming.add(task)
        task.add_done_callback(self._confirming.discard)

    async def _confirm(self, receipt: str) -> None:
        # The gateway sends nothing more to this chat before the confirmation, so a lost one (for
        # example after Ctrl-Z) is repeated. When this gives up, the gateway is gone.
        for wait_s in _CONFIRM_AFTER_S:
            await asyncio.sleep(wait_s)
            with suppress(GoclawError):
                await self.send("POST", "/api/chat/any/confirm", {"receipt": receipt})
                return

    # ------------------------------------------------------------------ HTTP

    async def _open(
        self,
        exits: AsyncExitStack,
        path: str,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Open an event stream; ``exits`` closes it."""
        timeout = httpx.Timeout(TIMEOUT_S, read=None)
        async with asyncio.timeout(STREAM_SILENCE_S):
            response = await exits.enter_async_context(
                self._client.stream("GET", path, params=params, headers=headers, timeout=timeout)
            )
        if response.is_error:
            await response.aread()
            _raise_for(response)
        return response

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        params: Params | None = None,
        *,
        timeout_s: float | None = None,
    ) -> bytes:
        """Send a request; returns the body of the response."""
        content = None if body is None else wire.dump(type(body), body)
        headers = {} if body is None else {"content-type": "application/json"}
        with _translated():
            response = await self._client.request(
                method,
                path,
                content=content,
                headers=headers,
                params=params,
                timeout=timeout_s or TIMEOUT_S,
            )
        _raise_for(response)
        return response.content


def _bad_usage(_name: str, _arguments: Mapping[str, object], error: GoclawError) -> GoclawError:
    """Return what the service raises: the gateway's clock may rule out days of a query, too."""
    key, _, problem = str(error).partition(": ")
    return BadUsageQuery(key, problem) if isinstance(error, NotAccepted) else error


async def while_alive(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks of a stream. Raises ``NoGateway`` if it is silent for too long."""
    while True:
        reading = asyncio.ensure_future(anext(chunks, None))
        try:
            # After Ctrl-Z the timeout fires before the event loop has read the data that arrived.
            for patience_s in (STREAM_SILENCE_S, _LAST_LOOK_S):
                await asyncio.wait([reading], timeout=patience_s)
            if not reading.done():
                raise NoGateway("the gateway did not answer in time")
            chunk = reading.result()
        finally:
            await _give_up(reading)
        if chunk is None:
            return
        yield chunk


async def _give_up(reading: asyncio.Future[bytes | None]) -> None:
    if reading.cancel():
        await asyncio.wait([reading])


def _raise_for(response: httpx.Response) -> None:
    if response.is_error:
        raise error_of(response.status_code, response.content)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (httpx.TimeoutException, TimeoutError) as error:
        raise NoGateway("the gateway did not answer in time") from error
    except httpx.TransportError as error:
        raise NoGateway("no gateway answers; to start one: goclaw run") from error

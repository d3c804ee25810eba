"""The gateway as seen from another process: ``Control`` and ``Terminals`` over its socket."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import httpx

from goclaw_py.cli.client.ask import Params, given
from goclaw_py.cli.client.lists import RemoteLists, segment
from goclaw_py.cli.client.refusals import NotAccepted, Refused
from goclaw_py.cli.client.usage import ask_usage
from goclaw_py.model.errors import GoclawError, StoreUnavailable
from goclaw_py.model.explanation import Explanation
from goclaw_py.model.ids import LaneName, SessionKey
from goclaw_py.ports.control import (
    ChatEvent,
    NodesView,
    NoGateway,
    PairingApplicant,
    QueueView,
    Resized,
    Submitted,
)
from goclaw_py.ports.store import Node, Person
from goclaw_py.runs.live_events import LiveEvent
from goclaw_py.runs.usage_report import UsageQuery, UsageReport
from goclaw_py.scheduler.views import ActiveRuns, GatewayStatus, LanesView, StopReport
from goclaw_py.web.api import wire
from goclaw_py.web.sockets import short_path

if TYPE_CHECKING:
    from goclaw_py.cli.client.heartbeats import RemoteHeartbeatService
    from goclaw_py.cli.client.jobs import RemoteJobService

T = TypeVar("T")

TIMEOUT_S = 30.0
"""Timeout of a request. A chat message is answered only after its database commit."""

STREAM_SILENCE_S = 3 * wire.PING_S
"""An event stream without any data for this long is considered broken."""

ATTACH_S = 10.0
"""How long to wait for the terminal to be attached before a message is sent."""

_LAST_LOOK_S = 1.0
_CONFIRM_AFTER_S = (0.0, 0.2, 1.0)

_KIND_OF: dict[int, type[GoclawError]] = {
    **{code: kind for kind, code in wire.STATUS_OF},
    **dict.fromkeys((400, 413, 422), NotAccepted),
}
_KIND_OF_WORD = {word: kind for kind, word in wire.CODE_OF}


class RemoteControl(RemoteLists):
    """Use it in ``async with``. Every method raises ``NoGateway`` if no gateway answers."""

    def __init__(self, path: Path) -> None:
        """``path`` is the gateway's socket."""
        self._path = path
        self._exits = AsyncExitStack()
        self._confirming: set[asyncio.Task[None]] = set()
        self._attached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._client: httpx.AsyncClient
        super().__init__(self._request)

    async def __aenter__(self) -> Self:
        name = self._exits.enter_context(short_path(self._path))
        # A local socket needs no TLS, and loading the certificates takes longer than most requests.
        transport = httpx.AsyncHTTPTransport(uds=name, verify=False)
        # Ignore proxy settings of the environment for a local socket.
        self._client = await self._exits.enter_async_context(
            httpx.AsyncClient(
                transport=transport, base_url="http://goclaw", timeout=TIMEOUT_S, trust_env=False
            )
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._confirming:
            await asyncio.wait(self._confirming)
        await self._exits.aclose()

    # ------------------------------------------------------------------ Control

    @cached_property
    def jobs(self) -> RemoteJobService:
        """Return the service for jobs."""
        # Imported here, because most commands do not need it.
        from goclaw_py.cli.client.jobs import RemoteJobService  # noqa: PLC0415

        return RemoteJobService(self._request)

    @cached_property
    def heartbeats(self) -> RemoteHeartbeatService:
        """Return the service for heartbeats."""
        from goclaw_py.cli.client.heartbeats import RemoteHeartbeatService  # noqa: PLC0415

        return RemoteHeartbeatService(self._request)

    async def status(self) -> GatewayStatus:
        """Return the state of the gateway."""
        return await self._get(GatewayStatus, "/api/status")

    async def lanes(self) -> LanesView:
        """Return the running and waiting runs of each lane."""
        return await self._get(LanesView, "/api/lanes")

    async def resize_lane(self, name: LaneName, concurrency: int) -> Resized:
        """Resize a lane."""
        path, body = f"/api/lanes/{segment(name)}", wire.ResizeBody(concurrency)
        return wire.read(Resized, await self._request("PUT", path, body))

    async def active(self) -> ActiveRuns:
        """Return all running and waiting runs."""
        return await self._get(ActiveRuns, "/api/runs/active")

    async def queue(self, key: str) -> QueueView:
        """Return the queue of one session."""
        return await self._get(QueueView, f"/api/sessions/{segment(key)}/queue")

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """Stop one run of a session, or everything in it."""
        path = f"/api/sessions/{segment(session)}/stop"
        return await self._post(StopReport, path, wire.StopBody(everything=everything))

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        """Send a message to the agent in a session."""
        path = f"/api/sessions/{segment(key)}/messages"
        raw = await self._request("POST", path, {"prompt": text}, params={"queue": queue})
        sent = wire.read(wire.Sent, raw)
        return Submitted(SessionKey(sent.sessionId), sent.runId)

    async def reset(self, key: SessionKey) -> None:
        """Start a new history of a session."""
        await self._request("POST", f"/api/sessions/{segment(key)}/reset")

    async def why(self, about: str | None = None) -> Explanation:
        """Explain why something did or did not happen."""
        return await self._get(Explanation, "/api/why", given(about=about))

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return tokens and cost of runs."""
        return await ask_usage(self._request, query)

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        """Yield live events of runs. Raises ``NoGateway`` when the gateway shuts down."""
        params = given(session=session)
        headers = {} if after is None else {"Last-Event-ID": after}
        reader = wire.EventReader(wire.LIVE_EVENTS)
        with _translated():
            async with AsyncExitStack() as exits:
                response = await self._open(exits, "/api/runs/events", params, headers)
                async for chunk in while_alive(response.aiter_bytes()):
                    for event in reader.feed(chunk):
                        yield event
        raise NoGateway("the gateway has shut down or closed the connection")

    async def retry_outbox(self, ids: Collection[int]) -> int:
        """Retry dead and dropped outgoing messages."""
        body = wire.RowsBody(list(ids))
        return (await self._post(wire.Retried, "/api/outbox/retry", body)).retried

    async def drop_outbox(self, ids: Collection[int]) -> int:
        """Drop dead and pending outgoing messages."""
        body = wire.RowsBody(list(ids))
        return (await self._post(wire.DroppedRows, "/api/outbox/drop", body)).dropped

    async def retry_letters(self, ids: Collection[int]) -> int:
        """Retry failed incoming messages."""
        body = wire.RowsBody(list(ids))
        return (await self._post(wire.Retried, "/api/inbox/retry", body)).retried

    async def dismiss_letters(self, ids: Collection[int]) -> int:
        """Dismiss failed incoming messages."""
        body = wire.RowsBody(list(ids))
        return (await self._post(wire.DroppedRows, "/api/inbox/drop", body)).dropped

    async def nodes(self) -> NodesView:
        """Return the nodes on this database."""
        return await self._get(NodesView, "/api/nodes")

    async def drain(self, node: str) -> Node:
        """Shut a node down gracefully."""
        return await self._post(Node, f"/api/nodes/{segment(node)}/drain", None)

    async def pairing_requests(self) -> list[PairingApplicant]:
        """Return pending requests to talk to the agent."""
        return await self._get(list[PairingApplicant], "/api/pairing")

    async def approve(self, code: str, *, guest: bool) -> Person:
        """Approve the person with this pairing code."""
        body = wire.ApproveBody(code, guest=guest)
        return await self._post(Person, "/api/pairing/approve", body)

    async def revoke(self, channel: str, account: str, sender_id: str) -> None:
        """Revoke the approval of a person."""
        body = wire.RevokeBody(channel, account, sender_id)
        await self._request("POST", "/api/people/revoke", body)

    async def allow_chat(self, channel: str, account: str, chat: str, *, allowed: bool) -> None:
        """Decide whether the agent listens in a group."""
        body = wire.AllowBody(channel, account, chat, allowed)
        await self._request("POST", "/api/chats/allow", body)

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

    async def say(self, chat: str, message_id: str, text: str) -> None:
        """Send a line once the terminal is attached, because otherwise the answer could be lost."""
        try:
            async with asyncio.timeout(ATTACH_S):
                await self._attached[chat].wait()
        except TimeoutError:
            raise StoreUnavailable("this terminal is not connected to the gateway yet") from None
        path = f"/api/chat/{segment(chat)}/messages"
        await self._request("POST", path, wire.SayBody(message_id, text))

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
                await self._request("POST", "/api/chat/any/confirm", wire.ConfirmBody(receipt))
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

    async def _get(self, kind: type[T], path: str, params: Params | None = None) -> T:
        return wire.read(kind, await self._request("GET", path, params=params))

    async def _post(self, kind: type[T], path: str, body: object) -> T:
        return wire.read(kind, await self._request("POST", path, body))

    async def _request(
        self, method: str, path: str, body: object = None, *, params: Params | None = None
    ) -> bytes:
        content = None if body is None else wire.dump(type(body), body)
        headers = {} if body is None else {"content-type": "application/json"}
        with _translated():
            response = await self._client.request(
                method, path, content=content, headers=headers, params=params
            )
        _raise_for(response)
        return response.content


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
        raise _told(response)


def _told(response: httpx.Response) -> GoclawError:
    """Return the error in a response."""
    # Imported here, because most commands get no error.
    from goclaw_py.web.api import heartbeat_errors, job_errors  # noqa: PLC0415

    raw = response.content
    with suppress(wire.Unreadable):
        # Check this first: a job error may have a kind that this release does not know.
        return heartbeat_errors.error_of(wire.read(heartbeat_errors.HeartbeatFault, raw))
    with suppress(wire.Unreadable):
        return job_errors.error_of(wire.read(job_errors.JobFault, raw))
    with suppress(wire.Unreadable):
        told = wire.read(wire.CodedError, raw)
        return _KIND_OF_WORD.get(told.code, Refused)(told.error)
    try:
        text = wire.read(wire.ApiError, raw).error
    except wire.Unreadable:
        text = f"the gateway answered {response.status_code}"
    return _KIND_OF.get(response.status_code, Refused)(text)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (httpx.TimeoutException, TimeoutError) as error:
        raise NoGateway("the gateway did not answer in time") from error
    except httpx.TransportError as error:
        raise NoGateway("no gateway answers; to start one: goclaw run") from error

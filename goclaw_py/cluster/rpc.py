"""Calls between nodes: request and response are stored in a row (docs/adr/0020)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import GoclawError, NodeSilent, NotFound, StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NodeCall
from goclaw_py.records.bound import BoundStore

log = logging.getLogger(__name__)

ANSWER_S: Final = 3.0
"""Seconds to wait for a response; older requests are not executed."""

_LOOK_S: Final = 1.0
"""How often requests and responses are read without a notice, in seconds."""

_REMEMBERED: Final = 1000

DRAIN: Final = "drain"
"""The call that shuts a node down."""

Facts = Mapping[str, Any]
Handler = Callable[[Facts], Awaitable[Facts]]


class NodeRpc:
    """Calls other nodes, and answers their calls."""

    def __init__(self, store: BoundStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.node = store.node
        self._handlers: dict[str, Handler] = {}
        self._wake = WakeEvent()
        self._waiting: dict[WakeEvent, None] = {}
        """The calls that wait for a response, in order."""
        self._answers: LruCache[int, str] = LruCache(_REMEMBERED)
        """Responses that could not be stored; their requests are not executed again."""
        self._working: dict[int, asyncio.Task[None]] = {}

    def serve(self, what: str, handler: Handler) -> None:
        """Register a handler. Its ``GoclawError`` is returned to the caller."""
        self._handlers[what] = handler

    def poll(self) -> None:
        """Check for requests and responses."""
        self._wake.call()
        for wake in self._waiting:
            wake.call()

    async def ask(self, node: NodeId, what: str, **facts: object) -> Facts:
        """Call another node and return its response.

        Raises ``NotFound`` if there is no such live node, ``NodeSilent`` if it does not respond in
        time (it may still execute the call), ``GoclawError`` with its text if it refuses, and
        ``StoreUnavailable``.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_S
        question = json.dumps({"what": what, **facts})
        call = await self._store.ask(node, question, now=self._clock.now())
        if call is None:
            raise NotFound(f"there is no live node {node!r}")
        wake = WakeEvent()
        self._waiting[wake] = None
        try:
            while True:
                wake.clear()
                if (answer := await self._store.answer_to(call)) is not None:
                    return _read(answer)
                if (left_s := until - loop.time()) <= 0:
                    raise NodeSilent(f"node {node} does not answer; it may still do it")
                await wake.wait(min(left_s, _LOOK_S))
        finally:
            del self._waiting[wake]

    async def run(self) -> None:
        """Answer the calls to this node, concurrently. Runs until cancelled."""
        try:
            while True:
                self._wake.clear()
                try:
                    for call in await self._store.open_calls(self.node()):
                        self._start_answer(call)
                except StoreUnavailable as error:
                    log.debug(
                        "store_unavailable", extra={"error": str(error), "part": "node_calls"}
                    )
                await self._wake.wait(_LOOK_S)
        finally:
            for task in self._working.values():
                task.cancel()

    def _start_answer(self, call: NodeCall) -> None:
        if call.id in self._working:
            return
        working = asyncio.create_task(self._answer(call), name=f"answer {call.id}")
        self._working[call.id] = working
        working.add_done_callback(lambda _: self._working.pop(call.id, None))

    async def _answer(self, call: NodeCall) -> None:
        if call.id not in self._answers:
            age_s = (self._clock.now() - call.asked_at).total_seconds()
            if age_s > ANSWER_S:
                # The caller has timed out, and may have made another call since.
                self._answers[call.id] = _refusal("it was asked too long ago")
            else:
                self._answers[call.id] = await self._do(call)
        try:
            await self._store.answer(call.id, self._answers[call.id])
        except StoreUnavailable as error:
            log.debug("store_unavailable", extra={"error": str(error), "part": "node_calls"})

    async def _do(self, call: NodeCall) -> str:
        facts = json.loads(call.question)
        handler = self._handlers.get(facts.pop("what"))
        if handler is None:
            return _refusal("this release does not know how to do that")
        try:
            return json.dumps({"answer": dict(await handler(facts))})
        except GoclawError as error:
            return _refusal(str(error))
        except Exception as error:
            # A boundary: one broken answer keeps no other from being given.
            log.exception("node_call_failed", extra={"call": call.id})
            return _refusal(f"a bug: {type(error).__name__}")


def _refusal(why: str) -> str:
    return json.dumps({"refusal": why})


def _read(answer: str) -> Facts:
    told: Facts = json.loads(answer)
    if "refusal" in told:
        raise GoclawError(str(told["refusal"]))
    found: Facts = told["answer"]
    return found

"""The emulator over HTTP."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.botapi.faults import Fault, FaultKind, Faults
from tests.botapi.methods import METHODS
from tests.botapi.routes import add_routes
from tests.botapi.rules import Json, Parameters, Refusal, flood
from tests.botapi.wire import fail, read
from tests.botapi.world import Chat, World

TOKEN = "4242:AAtest-token_for-the-emulator-only12"
_WELL_FORMED_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]{10,}")
_OLDER_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
    "running"
)
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete "
    "the webhook first"
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the emulator received.

    ``at`` is the loop's clock in seconds; ``status`` is None while it is being handled, and 0 if
    the server's own answer never left.
    """

    at: float
    method: str
    parameters: Mapping[str, object]
    status: int | None
    result: object
    fault: FaultKind | None


class BotApi:
    """The server and its controls. Use as an asynchronous context manager."""

    def __init__(
        self, *, token: str = TOKEN, username: str = "GoclawTestBot", port: int = 0
    ) -> None:
        self.token = token
        self.calls: list[Call] = []
        self.faults = Faults()
        self.world = World(int(token.partition(":")[0]), username, lambda: int(time.time()))
        self._port = port
        self._flood_per_s: int | None = None
        self._sent_at: dict[int, list[float]] = {}
        self._refused_token = False
        self._changed = asyncio.Event()
        self._poller: asyncio.Future[object] | None = None
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        add_routes(app, self)
        # Without handler cancellation a poller that went away would still count as one.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The base URL, as a gateway's ``base_url`` wants it."""
        return f"http://127.0.0.1:{self._port}"

    # ------------------------------------------------------------------ controls

    def say(
        self,
        user_id: int,
        text: str,
        *,
        chat_id: int | None = None,
        name: str = "Ann",
        username: str | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
    ) -> list[Json]:
        """Let a user write, in the private chat with the bot unless ``chat_id`` names a group."""
        more: Json = {}
        if thread is not None:
            more = {"message_thread_id": thread, "is_topic_message": True}
        chat = self.world.chats.get(user_id if chat_id is None else chat_id)
        if reply_to is not None and chat is not None:
            more["reply_to_message"] = chat.messages[reply_to]
        if chat_id is None:
            messages = self.world.say(user_id, text, name=name, username=username, more=more)
        elif chat is None:
            raise ValueError(f"there is no chat {chat_id}; add_group makes one")
        else:
            messages = self.world.write(
                chat, user_id, text, name=name, username=username, more=more
            )
        self._notify()
        return messages

    def press(self, user_id: int, message_id: int, data: str) -> str:
        """Let a user press a button under a message of the bot; returns the press's id."""
        press = f"press-{len(self.calls)}-{message_id}-{data}"
        self.world.presses.add(press)
        chat = self.world.chats[user_id]
        sender: Json = {"id": user_id, "is_bot": False, "first_name": chat.title}
        message = chat.messages[message_id]
        self.world.tell(
            "callback_query",
            {"id": press, "from": sender, "message": message, "data": data, "chat_instance": "1"},
        )
        self._notify()
        return press

    def push(self, update: Json) -> int:
        """Queue an update as it is, however malformed; returns its id."""
        number = self.world.tell_raw(update)
        self._notify()
        return number

    def add_group(self, chat_id: int, title: str, *, topics: Sequence[int] = ()) -> None:
        """Put the bot into a supergroup; with ``topics`` it is a forum."""
        self.world.chats[chat_id] = Chat(chat_id, "supergroup", title, topics=set(topics))

    def block(self, user_id: int) -> None:
        """Let a user block the bot."""
        self.world.chats[user_id].blocked = True

    def fault(self, fault: Fault) -> None:
        """Let the next calls go wrong."""
        self.faults.add(fault)

    def clear_faults(self) -> None:
        self.faults.clear()

    def limit(self, per_second: int | None) -> None:
        """Refuse more than this many messages a second in one chat; None: do not limit."""
        self._flood_per_s = per_second

    def set_webhook(self, url: str) -> None:
        """Set a webhook, as another program might have done."""
        self.world.webhook = url
        self._drop_poller()

    def revoke(self) -> None:
        """Make the token invalid."""
        self._refused_token = True
        self._notify()

    def renumber(self, last_update: int) -> None:
        """Let update ids start anew after ``last_update``."""
        self.world.renumber(last_update)

    def transcript(self, method: str | None = None, *, ok: bool = False) -> list[Call]:
        """Calls in the order of their arrival; ``ok``: only those that were answered with 200."""
        return [
            call
            for call in self.calls
            if (method is None or call.method == method) and (not ok or call.status == 200)
        ]

    def texts(self, chat_id: int) -> list[str]:
        """What the bot wrote in a chat, as people see it now."""
        chat = self.world.chats.get(chat_id)
        messages = chat.messages.values() if chat else ()
        return [str(m["text"]) for m in messages if m["from"] == self.world.me()]

    def pending(self) -> int:
        """Updates that are not confirmed."""
        return len(self.world.updates)

    async def wait_calls(
        self, method: str, count: int = 1, *, ok: bool = False, timeout_s: float = 5
    ) -> list[Call]:
        """Wait until ``method`` was called so often. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while len(calls := self.transcript(method, ok=ok)) < count:
                await self._changed.wait()
        return calls

    async def wait_texts(self, chat_id: int, count: int = 1, *, timeout_s: float = 5) -> list[str]:
        """Wait until the bot has written so many messages in a chat. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while len(texts := self.texts(chat_id)) < count:
                await self._changed.wait()
        return texts

    async def wait_confirmed(self, *, timeout_s: float = 5) -> None:
        """Wait until every update is confirmed. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while self.world.updates:
                await self._changed.wait()

    # ------------------------------------------------------------------ handling

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = _canonical(request.match_info["method"])
        values = await read(request)
        place = len(self.calls)
        fault = self.faults.take(method)
        now = asyncio.get_running_loop().time()
        self.calls.append(Call(now, method, values, None, None, fault.kind if fault else None))
        self._notify()
        status = 0
        body: Json = {}
        try:
            if fault is not None and not fault.kind.after and fault.kind is not FaultKind.DELAY:
                return await fail(request, fault)
            if fault is not None and fault.kind is FaultKind.DELAY:
                await asyncio.sleep(fault.seconds)
            status, body = await self._answer(request.match_info["token"], method, values)
            if fault is not None and fault.kind.after:
                status = 0
                return await fail(request, fault)
            return web.json_response(body, status=status)
        finally:
            result = body.get("result", body.get("description"))
            self.calls[place] = Call(
                now, method, values, status, result, fault.kind if fault else None
            )
            self._notify()

    async def _answer(
        self, token: str, method: str, values: Mapping[str, object]
    ) -> tuple[int, Json]:
        try:
            self._check_token(token)
            call = Parameters(values)
            if method == "getUpdates":
                return 200, {"ok": True, "result": await self._get_updates(call)}
            if method not in METHODS:
                raise Refusal(404, "Not Found: method not found")
            if method == "sendMessage":
                self._check_flood(call)
            return 200, {"ok": True, "result": METHODS[method](self.world, call)}
        except Refusal as refusal:
            return refusal.code, refusal.body()

    def _check_token(self, token: str) -> None:
        if not _WELL_FORMED_TOKEN.fullmatch(token):
            raise Refusal(404, "Not Found")
        if token != self.token or self._refused_token:
            raise Refusal(401, "Unauthorized")

    def _check_flood(self, call: Parameters) -> None:
        if self._flood_per_s is None:
            return
        now = asyncio.get_running_loop().time()
        chat = call.number("chat_id")
        recent = [at for at in self._sent_at.get(chat, []) if at > now - 1]
        if len(recent) >= self._flood_per_s:
            raise flood(1)
        self._sent_at[chat] = [*recent, now]

    # ------------------------------------------------------------------ long polling

    async def _get_updates(self, call: Parameters) -> list[Json]:
        if self.world.webhook:
            raise Refusal(409, _WEBHOOK)
        limit = call.number("limit", 100)
        if not 1 <= limit <= 100:
            limit = 100
        if call.json("allowed_updates") is not None:
            self.world.allowed = frozenset(map(str, call.items("allowed_updates")))
        self._drop_poller()
        me = self._poller = asyncio.get_running_loop().create_future()
        self.world.confirm(call.number("offset"))
        self._notify()
        try:
            return await self._poll(me, limit, min(max(call.number("timeout"), 0), 50))
        finally:
            if self._poller is me:
                self._poller = None

    async def _poll(self, me: asyncio.Future[object], limit: int, seconds: int) -> list[Json]:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not self.world.updates and loop.time() < end:
            change: asyncio.Future[object] = asyncio.ensure_future(self._changed.wait())
            try:
                waits: set[asyncio.Future[object]] = {change, me}
                await asyncio.wait(
                    waits, timeout=end - loop.time(), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                change.cancel()
            if me.done():
                raise Refusal(409, _WEBHOOK if self.world.webhook else _OLDER_POLLER)
            if self._refused_token:
                raise Refusal(401, "Unauthorized")
        return self.world.updates[:limit]

    def _drop_poller(self) -> None:
        """A 409 goes to the poller that was there first."""
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)

    # ------------------------------------------------------------------ waiting

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _canonical(method: str) -> str:
    """Method names are read without regard to case."""
    known = {name.lower(): name for name in (*METHODS, "getUpdates")}
    return known.get(method.lower(), method)

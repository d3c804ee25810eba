"""Updates on their way to the webhook, as the real server brings them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import aiohttp

from tests.botapi.faults import DELIVERY, Fault, FaultKind, Faults
from tests.botapi.records import Delivery
from tests.botapi.rules import dumps
from tests.botapi.updates import Pending
from tests.botapi.world import World

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
_LOOPBACK = frozenset(["127.0.0.1", "::1", "localhost"])
_MOST_WAITS = 20
_CONNECT_S = 10.0
_UNAVAILABLE = 503


class _Failed(Exception):
    """A delivery without success; ``status`` is the bot's answer, 0 if there was none."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


class _Refused(_Failed):
    """Nobody listens there: the update has certainly not arrived."""


class Courier:
    """Brings updates: those of one lane one after the other, lanes side by side.

    An update counts as confirmed with a 2xx only; else it stays and is brought again.
    """

    def __init__(self, world: World, faults: Faults, on_change: Callable[[], None]) -> None:
        self.routes: dict[str, Sequence[str]] = {}
        """Where what goes to an address is handed to: to each in turn."""
        self.timeout_s = 60.0
        self.retry_s = 0.05
        self.deliveries: list[Delivery] = []
        self._world = world
        self._faults = faults
        self._on_change = on_change
        self._lanes: dict[tuple[str, object], deque[Pending]] = defaultdict(deque)
        self._tasks: dict[tuple[str, object], asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(1)
        self._session: aiohttp.ClientSession | None = None
        self._serving = world.hook
        self._turns: Counter[str] = Counter()

    def take(self, update: Pending) -> None:
        """Bring an update, if there is a webhook."""
        if not self._world.hook.url:
            return
        lane = self._lanes[update.lane]
        lane.append(update)
        if update.lane not in self._tasks:
            self._tasks[update.lane] = asyncio.ensure_future(self._serve(update.lane, lane))

    def restart(self) -> None:
        """Begin anew, if there is another webhook or none."""
        if self._serving is self._world.hook:
            return
        self._serving = self._world.hook
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        self._lanes.clear()
        self._places = asyncio.Semaphore(self._serving.connections)
        for update in list(self._world.updates.waiting.values()):
            self.take(update)

    async def close(self) -> None:
        """Stop."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _serve(self, key: tuple[str, object], lane: deque[Pending]) -> None:
        failures = 0
        while lane:
            update = lane[0]
            if update.serial not in self._world.updates.waiting:
                lane.popleft()
                continue
            async with self._places:
                wait_s = await self._try(update, failures)
            if wait_s is None:
                lane.popleft()
                failures = 0
            else:
                failures += 1
                await asyncio.sleep(wait_s)
        # Nothing is awaited since the lane was seen empty, so nothing came into it.
        del self._tasks[key]

    async def _try(self, update: Pending, failures: int) -> float | None:
        """One attempt; how long to wait before the next one, None after a success."""
        hook = self._world.hook
        chat = update.lane[1] if isinstance(update.lane[1], int) else None
        fault = self._faults.take(DELIVERY, chat)
        began = self._world.clock()
        status, error, wait_s = 0, "", None
        try:
            status = await self._bring(update, fault)
        except _Failed as failed:
            status, error = failed.status, str(failed)
            wait_s = self.retry_s * min(2**failures, _MOST_WAITS)
            hook.error, hook.error_date = error, self._world.now()
        else:
            self._world.updates.done(update)
        now = self._world.clock()
        self.deliveries.append(
            Delivery(now, update.id, update.kind, chat, hook.url, status, error, now - began)
        )
        self._on_change()
        return wait_s

    async def _bring(self, update: Pending, fault: Fault | None) -> int:
        """The bot's 2xx. Raises ``_Failed``."""
        status = await self._post(update)
        if self._world.updates.doubled:
            self._world.updates.doubled -= 1
            status = await self._post(update)
        if fault and fault.kind is FaultKind.RESET_AFTER:
            raise _Failed("Read timeout expired")
        return status

    async def _post(self, update: Pending) -> int:
        """Hand it to whose turn it is; where nobody listens, or that one says 503, to the next."""
        *others, last = self._addresses(self._world.hook.url)
        for address in others:
            try:
                return await self._post_to(address, update)
            except _Failed as failed:
                if failed.status != _UNAVAILABLE and not isinstance(failed, _Refused):
                    raise
        return await self._post_to(last, update)

    async def _post_to(self, address: str, update: Pending) -> int:
        hook = self._world.hook
        headers = {"Content-Type": "application/json"}
        if hook.secret:
            headers[SECRET_HEADER] = hook.secret
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_S, sock_read=self.timeout_s
        )
        try:
            async with self._connections().post(
                address,
                data=dumps(update.body),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                await answer.read()
                status, reason = answer.status, answer.reason
        except aiohttp.ClientConnectorError as error:
            raise _Refused("Connection refused") from error
        except TimeoutError as error:
            raise _Failed("Read timeout expired") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _Failed("Connection closed") from error
        if not 200 <= status <= 299:
            raise _Failed(f"Wrong response from the webhook: {status} {reason}", status)
        return status

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def _addresses(self, url: str) -> Sequence[str]:
        """Where a webhook is on this machine, from whose turn it is on. Raises ``_Failed``."""
        for public, to in self.routes.items():
            if url == public or url.startswith((f"{public}/", f"{public}?")):
                first = self._turns[public] % len(to)
                self._turns[public] += 1
                return [one + url.removeprefix(public) for one in (*to[first:], *to[:first])]
        with contextlib.suppress(ValueError):
            if urlsplit(url).hostname in _LOOPBACK:
                return [url]
        raise _Failed("Failed to resolve host: Name or service not known")

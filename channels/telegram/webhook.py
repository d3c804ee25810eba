"""Updates that the server sends to a webhook (SPEC CHAN-2).

The server sends one update of a chat at a time and takes a 200 as a confirmation. So the response
comes after the commit, and at once: a late one delays the next message of the chat, perhaps a
``/stop``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace

from channels.telegram.client import BotClient
from channels.telegram.inbound.reader import KINDS
from channels.telegram.outage import Outage, health_of
from channels.telegram.settings import TelegramSettings
from channels.telegram.updates import Updates
from goclaw_py.chat.channel import Hook, InboundHandler, WebAnswer, WebRequest
from goclaw_py.core.errors import ChannelError, ChannelRefused, StoreUnavailable
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.storable import parse_json
from goclaw_py.scheduler.views import ChannelHealth, ChannelState

_log = logging.getLogger("channels.telegram")

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  the name of a header
MOST_BYTES = 1 << 20
"""An update contains at most some ten thousand characters."""

_LONGEST_PAUSE_S = 30.0
_LOOK_S = 60.0
_LAST_S = 2.0
"""Seconds that requests in progress may take at the end."""

_REFUSED_LASTS_S = 3600.0
"""Seconds for which a request with a wrong secret is reported."""
_LOG_EVERY_S = 300.0

_OK = WebAnswer(200)
_NOT_NOW = WebAnswer(503, "not available now; try again")


def secret_of(token: str) -> str:
    """Return the secret in the server's requests, which is derived from the token."""
    return hmac.new(token.encode(), b"goclaw_py webhook", hashlib.sha256).hexdigest()


class WebhookReceiver:
    """The receiver of a bot's webhook."""

    def __init__(
        self,
        settings: TelegramSettings,
        account: str,
        on_answer: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``on_answer`` is called when the server has accepted the token again.

        ``now`` is in seconds since 1970.
        """
        self._settings = settings
        self._account = account
        self._on_answer = on_answer
        self._now = now
        self._secret = secret_of(settings.token)
        self._updates: Updates | None = None
        self._intake: InboundHandler | None = None
        self._taking: set[asyncio.Task[object]] = set()
        self._since = 0.0
        self._refused = 0
        """The number of requests with a wrong secret."""
        self._refused_at = self._logged_at = -math.inf
        self._network = Outage("Telegram cannot be reached", account, _LONGEST_PAUSE_S)
        self._store = Outage("messages cannot be committed", account, _LONGEST_PAUSE_S)
        self._foreign = Outage(
            "another program sets this bot's webhook; stop it there",
            account,
            _LONGEST_PAUSE_S,
            ChannelState.CONFLICT,
        )
        self._unwanted = Outage("Telegram rejects the webhook", account, _LONGEST_PAUSE_S)
        self._failing = Outage("Telegram cannot deliver to the webhook", account, _LONGEST_PAUSE_S)

    def use(self, settings: TelegramSettings) -> None:
        """Use other settings with the same address in the next ``run``."""
        self._settings, self._secret = settings, secret_of(settings.token)

    @property
    def hook(self) -> Hook:
        """Return its endpoint."""
        return Hook(self._settings.webhook_path, self._handle, MOST_BYTES)

    @property
    def health(self) -> ChannelHealth:
        """The health of the connection."""
        health = health_of(
            (self._foreign, self._network, self._unwanted, self._failing, self._store)
        )
        return replace(health, warning=self._warning())

    async def run(self, client: BotClient, updates: Updates, intake: InboundHandler) -> None:
        """Receive updates until cancelled. Raises ``ChannelRefused``."""
        self._updates, self._intake, self._since = updates, intake, self._now()
        try:
            await self._set(client)
            while True:
                await asyncio.sleep(_LOOK_S)
                await self._check(client)
        finally:
            self._intake = None
            if self._taking:
                # They will be confirmed, so their presses must be answered by us.
                await asyncio.wait(self._taking, timeout=_LAST_S)

    async def _set(self, client: BotClient) -> None:
        """Set the webhook at the server, with retries."""
        settings = self._settings
        while True:
            try:
                # Always, and not only if it is another one: the secret cannot be asked for.
                await client.set_webhook(
                    settings.webhook_url,
                    secret=self._secret,
                    kinds=KINDS,
                    connections=settings.webhook_connections,
                )
            except ChannelRefused:
                raise
            except ChannelError as error:
                outage = self._network if error.retryable else self._unwanted
                pause = outage.again(str(error))
                await asyncio.sleep(max(pause, error.retry_after_s or 0))
            else:
                self._network.over()
                self._unwanted.over()
                self._on_answer()
                return

    async def _check(self, client: BotClient) -> None:
        """Check that the webhook is still ours and works."""
        try:
            webhook = await client.webhook()
        except ChannelRefused:
            raise
        except ChannelError as error:
            self._network.again(str(error))
            return
        self._network.over()
        self._on_answer()
        if webhook.url != self._settings.webhook_url:
            self._foreign.again(webhook.url or "it was removed")
            await self._set(client)
            return
        self._foreign.over()
        if webhook.trouble and webhook.pending:
            self._failing.again(webhook.trouble)
        else:
            self._failing.over()

    async def _handle(self, request: WebRequest) -> WebAnswer:
        """Handle a request; one without the secret gets no information."""
        if request.method != "POST":
            return WebAnswer(405)
        said = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(said.encode(), self._secret.encode()):
            self._count_refused(has_secret=bool(said))
            return WebAnswer(403)
        if self._intake is None or self._updates is None:
            return _NOT_NOW
        try:
            # What is refused here comes again for a day.
            update = parse_json(request.body)
        except ValueError:
            return WebAnswer(400, "no JSON")
        return await self._commit(update, self._updates, self._intake)

    def _count_refused(self, *, has_secret: bool) -> None:
        now = asyncio.get_running_loop().time()
        self._refused = self._refused + 1 if now - self._refused_at <= _REFUSED_LASTS_S else 1
        self._refused_at = now
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            facts = {"account": self._account, "calls": self._refused, "has_secret": has_secret}
            _log.warning("webhook_wrong_secret", extra=facts)

    def _warning(self) -> str:
        ago = asyncio.get_running_loop().time() - self._refused_at if self._refused else math.inf
        if ago > _REFUSED_LASTS_S:
            return ""
        calls = "1 call" if self._refused == 1 else f"{self._refused} calls"
        return (
            f"{calls} of the webhook with a wrong secret or none, the last {ago:.0f} s ago: not "
            "from Telegram, or the reverse proxy removes the header X-Telegram-Bot-Api-Secret-Token"
        )

    async def _commit(self, update: object, updates: Updates, intake: InboundHandler) -> WebAnswer:
        task = asyncio.current_task()
        assert task is not None
        self._taking.add(task)
        try:
            await updates.commit([update], intake, self._is_redelivered)
        except StoreUnavailable as error:
            self._store.again(str(error))
            return _NOT_NOW
        except Exception:
            # A boundary: the server tries again, and other updates are not kept from coming.
            _log.exception("update_failed", extra={"account": self._account})
            return WebAnswer(500)
        finally:
            self._taking.discard(task)
        self._store.over()
        return _OK

    def _is_redelivered(self, _number: int | None, message: InboundMessage) -> bool:
        """Return whether a message is older than this process, and may have been handled before."""
        return message.sent_at.timestamp() < self._since

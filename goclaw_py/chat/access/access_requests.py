"""Access requests of people and groups, which owners approve or deny (SPEC CHAN-5)."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.channel import Channel
from goclaw_py.core.chat_commands import (
    AccessAction,
    AccessButton,
    Pressed,
    access_buttons,
    addresses_another_bot,
    command_of,
    toast,
)
from goclaw_py.core.containers import LruCache
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.run_events import PressAnswered
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.text import truncate
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import (
    InboxKind,
    InboxRow,
    NewInbox,
    NewPairing,
    PairingRequest,
    PeopleStore,
    Place,
)
from goclaw_py.records.people import (
    GROUP_VALID_FOR,
    VALID_FOR,
    AccessVerdict,
    about_request,
    code_hash,
    make_code,
)
from goclaw_py.runs.session_settings import SessionSettings

log = logging.getLogger(__name__)

MOST_ASKED = 5
"""The number of requests per hour that owners of an account see; then one notice of more.

Each node counts separately: strangers cannot create nodes.
"""

MOST_KEPT = 20
"""The number of a stranger's messages that are stored; a request keeps the newest few."""

_KEPT_CHARS = 4096
_REMEMBERED = 10_000
_HOUR = timedelta(hours=1)

_ALLOW = AccessAction.ALLOW
_VERDICTS: Final = {
    AccessAction.GUEST: AccessVerdict.GUEST,
    AccessAction.OWNER: AccessVerdict.APPROVE,
    AccessAction.DENY: AccessVerdict.DENY,
}
"""The decisions; other buttons lead to one."""

_Key = tuple[str, str, str]
"""Channel, account, and sender."""


class AccessRequests:
    """Creates access requests, asks the owners, and applies their decisions."""

    def __init__(
        self,
        store: PeopleStore,
        clock: Clock,
        policies: SessionSettings,
        access_control: AccessControl,
        channels: Mapping[Place, Channel],
        owners_chats: Callable[[], Awaitable[Sequence[Target]]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._access_control = access_control
        self._channels = channels
        self._owners_chats = owners_chats
        self._asked: defaultdict[Place, deque[datetime]] = defaultdict(deque)
        """When the owners of an account were asked or notified, in the last hour."""
        self._kept: LruCache[_Key, int] = LruCache(_REMEMBERED)
        """The number of stored messages of each stranger."""

    # ------------------------------------------------------------------ asking

    async def of(self, messages: Sequence[InboundMessage]) -> list[NewPairing]:
        """Return the requests for messages of strangers and unknown groups.

        Raises ``StoreUnavailable``.
        """
        made = [one for one in map(self._made, messages) if one is not None]
        fresh = {_key(one.request) for one, _ in made if not self._has_requested(one.request)}
        owners = await self._owners_chats() if fresh else ()
        asked = {place: len(self._lately(place)) for place in {key[:2] for key in fresh}}
        pairings: list[NewPairing] = []
        for one, code in made:
            request, key = one.request, _key(one.request)
            ask: tuple[OutboundMessage, ...] = ()
            if key in fresh:
                place = request.channel, request.account
                there = [chat for chat in owners if (chat.channel, chat.account) == place]
                ask = self._ask(request, there, asked[place])
                asked[place] += bool(ask)
                fresh.discard(key)
            is_asked = bool(ask and ask[0].buttons)
            if code:
                pairings.append(
                    replace(one, say=(*self._greeting(request, code, has_requested=is_asked), *ask))
                )
            elif is_asked:  # otherwise owners can be asked about the group later
                pairings.append(replace(one, say=ask))
        return pairings

    def committed(self, pairings: Sequence[NewPairing]) -> None:
        """Handle that requests are stored."""
        for one in pairings:
            request, key = one.request, _key(one.request)
            before = self._kept.get(key, 0) if self._has_requested(request) else 0
            self._kept[key] = before + len(one.rows)
            if any(message.target.chat != request.chat for message in one.say):
                self._lately((request.channel, request.account)).append(self._clock.now())
            self._access_control.introduced(request)

    def _made(self, message: InboundMessage) -> tuple[NewPairing, str] | None:
        """Return the request for a stranger's message or an unknown group, and its code."""
        target, now = message.target, self._clock.now()
        place = target.channel, target.account
        is_group = message.peer is PeerKind.GROUP
        sender = Sender(target.chat, message.place_name) if is_group else message.sender
        has_asked = self._access_control.has_requested(place, sender.id)
        if has_asked:
            if is_group or self._kept.get((*place, sender.id), 0) >= MOST_KEPT:
                return None
        elif not self._access_control.may_ask(place):
            return None
        code = "" if is_group else make_code(secrets.choice)
        request = PairingRequest(
            *place,
            sender=sender,
            code_hash=code_hash(code) if code else "",
            created_at=now,
            expires_at=now + (GROUP_VALID_FOR if is_group else VALID_FOR),
            id=secrets.token_hex(8),
            chat=target.chat,
            peer=message.peer,
        )
        return NewPairing(request, rows=() if is_group else self._row(message)), code

    def _greeting(
        self, request: PairingRequest, code: str, *, has_requested: bool
    ) -> tuple[OutboundMessage, ...]:
        target = Target(request.channel, request.account, request.chat)
        text = access_texts.code(code, asks_owner=has_requested)
        parts = self._channels[target.channel, target.account].parts(text)
        return tuple(OutboundMessage(target, part, rich=True) for part in parts)

    def _row(self, message: InboundMessage) -> tuple[NewInbox, ...]:
        """Return what is kept of a message, with the fields of an inbox row."""
        target = message.target
        handle = self._channels[target.channel, target.account].handle
        if addresses_another_bot(message.text, handle):
            return ()
        agent = self._policies.rules(target).agent
        kept = replace(
            message,
            text=truncate(message.text, _KEPT_CHARS),
            formatted=truncate(message.formatted, _KEPT_CHARS),
            quote=truncate(message.quote, _KEPT_CHARS),
        )
        is_command = command_of(message, handle) is not None
        kind = InboxKind.COMMAND if is_command else InboxKind.MESSAGE
        return (NewInbox(kept, chat_session(agent, target, message.peer), agent, kind),)

    def _ask(
        self, request: PairingRequest, owners: Sequence[Target], requested: int
    ) -> tuple[OutboundMessage, ...]:
        """Return the messages to owners about a request, given the number in the last hour."""
        if requested > MOST_ASKED:
            return ()
        if requested == MOST_ASKED:
            return tuple(OutboundMessage(chat, access_texts.MORE_ASK) for chat in owners)
        text, about = self._question(request), about_request(request.id)
        buttons = access_buttons(request.peer, request.id)
        return tuple(OutboundMessage(chat, text, buttons=buttons, alert=about) for chat in owners)

    def _question(self, request: PairingRequest) -> str:
        # People know the bot, not its agents.
        handle = self._channels[request.channel, request.account].handle
        bot = f"@{handle}" if handle else "me"
        if request.is_group:
            return access_texts.asks_to_listen(request.sender.name or request.chat, bot)
        return access_texts.asks_to_talk(request.sender, bot)

    def _lately(self, place: Place) -> deque[datetime]:
        asked, now = self._asked[place], self._clock.now()
        while asked and now - asked[0] >= _HOUR:
            asked.popleft()
        return asked

    def _has_requested(self, request: PairingRequest) -> bool:
        return self._access_control.has_requested(
            (request.channel, request.account), request.sender.id
        )

    # ------------------------------------------------------------------ deciding

    async def press(self, row: InboxRow, button: AccessButton) -> Pressed:
        """Apply an owner's decision; refuse other people.

        Raises ``StoreUnavailable``.
        """
        message = row.message
        target, sender = message.target, message.sender
        rules = self._policies.rules(target).access
        if message.peer is not PeerKind.DIRECT or not self._access_control.is_owner(
            target, sender.id, rules
        ):
            return Pressed("", is_used=False, toast=access_texts.NOT_AN_OWNER)
        now, place = self._clock.now(), (target.channel, target.account)
        verdict = _VERDICTS.get(button.action)
        if verdict is None:
            waiting = await self._waiting(button.request, place)
            if waiting is not None and not (waiting.is_group and button.action is _ALLOW):
                return self._ask_again(waiting, button.action)
            verdict = AccessVerdict.APPROVE  # of a group; others have ended
        request = await self._store.decide(
            button.request,
            verdict,
            place=place,
            by=access_texts.name(sender),
            now=now,
        )
        if request is None:
            return Pressed("", is_used=True, toast=access_texts.DECIDED)
        if request.expires_at <= now:
            return Pressed("", is_used=True, toast=access_texts.expired(request.sender))
        facts = {"channel": target.channel, "account": target.account, "chat": request.chat}
        log.info("access_decided", extra={**facts, "verdict": verdict, "by": sender.id})
        told = access_texts.result(request.sender, request.peer, verdict)
        return Pressed("", is_used=True, toast=told)

    async def _waiting(self, request_id: str, place: Place) -> PairingRequest | None:
        """Return a request of an account that can be decided."""
        found = await self._store.pairing_requests(now=self._clock.now())
        of_place = (one for one in found if (one.channel, one.account) == place)
        return next((one for one in of_place if one.id == request_id), None)

    def _ask_again(self, request: PairingRequest, action: AccessAction) -> Pressed:
        """Return the question whether a person becomes an owner, or the first question."""
        is_sure = action is _ALLOW
        text = access_texts.asks_for_owner(request.sender) if is_sure else self._question(request)
        buttons = access_buttons(request.peer, request.id, owner=is_sure)
        shown = access_texts.SURE if is_sure else access_texts.NOT_DECIDED
        return Pressed(text, is_used=False, toast=shown, buttons=buttons)

    def refuse(self, presses: Sequence[InboundMessage]) -> None:
        """Answer button presses of people without access, unless another node does."""
        for message in presses:
            if message.press is not None and toast(message.press) is None:
                channel = self._channels[message.target.channel, message.target.account]
                told = PressAnswered(message.target, message.external_id, access_texts.NOT_AN_OWNER)
                channel.signal(told)


def _key(request: PairingRequest) -> _Key:
    return request.channel, request.account, request.sender.id

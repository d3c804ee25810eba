"""Classifies what a channel delivers before it is processed (SPEC CHAN-5)."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, assert_never

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.access.access_requests import AccessRequests
from goclaw_py.chat.access.name_cache import NameCache
from goclaw_py.chat.channel import Channel
from goclaw_py.core.actors import acting
from goclaw_py.core.chat_commands import our_command_of, split_new
from goclaw_py.core.command_text import command_head
from goclaw_py.core.containers import LruCache
from goclaw_py.core.display_names import KnownNames, shown_name, title_from
from goclaw_py.core.messages import (
    ChatMigrated,
    ChatReached,
    ExternalId,
    Inbound,
    InboundMessage,
    PeerKind,
    Target,
    TopicChanged,
    TopicState,
    external_id,
)
from goclaw_py.core.metrics import NO_METER, MetricsRecorder
from goclaw_py.core.session_keys import (
    AccessDecision,
    AccessRules,
    access,
    chat_session,
    hears_group,
    is_made_name,
)
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import (
    BackgroundStore,
    ChatStore,
    NameKind,
    NameStore,
    NewInbox,
    NewPairing,
    Place,
    SeenChat,
    SeenName,
    Unmentioned,
)
from goclaw_py.runs.session_settings import ChatRules, SessionSettings

log = logging.getLogger(__name__)

_REMEMBERED = 10_000
_REST_WITHIN = timedelta(seconds=5)
_NOTED_AGAIN = timedelta(hours=1)
"""How often an undecided chat is stored again, with its name."""
_NAMED_AGAIN = timedelta(days=1)
"""How often an unchanged name is stored again, so that it is not deleted as an old one."""
_UNMENTIONED_AGAIN = timedelta(seconds=10)
"""How often the time of a message that was not for the bot is stored."""


@dataclass(slots=True)
class ClassifiedMessages:
    """A batch by kind of message, each kind in order of arrival."""

    admitted: list[tuple[InboundMessage, ChatRules]] = field(default_factory=list)
    asking: list[InboundMessage] = field(default_factory=list)
    """Messages of people, and in groups, without a decision."""
    refused: list[InboundMessage] = field(default_factory=list)
    """Button presses of people without access."""
    pairings: list[NewPairing] = field(default_factory=list)
    """The access requests for ``asking``."""
    events: list[ChatMigrated | ChatReached | TopicChanged] = field(default_factory=list)
    seen: list[SeenChat] = field(default_factory=list)
    names: list[SeenName] = field(default_factory=list)
    """Names that are not stored yet, have changed, or were stored a day ago."""
    unmentioned: list[Unmentioned] = field(default_factory=list)


class IngressStore(ChatStore, NameStore, BackgroundStore, Protocol):
    """The store operations that this module needs."""


class IngressFilter:
    """Classifies incoming messages."""

    def __init__(
        self,
        store: IngressStore,
        clock: Clock,
        policies: SessionSettings,
        access_control: AccessControl,
        requests: AccessRequests,
        *,
        names: NameCache,
        meter: MetricsRecorder = NO_METER,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._access_control = access_control
        self._requests = requests
        self._meter = meter
        self._albums: LruCache[tuple[Target, str], None] = LruCache(_REMEMBERED)
        """Albums with a part that is for the agent: so are the other parts."""
        self._cut: LruCache[tuple[Target, str], datetime] = LruCache(_REMEMBERED)
        """Senders whose text for the agent was split by the channel."""
        self._rests: LruCache[ExternalId, None] = LruCache(_REMEMBERED)
        """The next parts of split texts; after a failed commit they come again."""
        self._noted: LruCache[Target, datetime] = LruCache(_REMEMBERED)
        self._unmentioned: LruCache[Target, datetime] = LruCache(_REMEMBERED)
        self._names: LruCache[Target, tuple[SeenName, datetime]] = LruCache(_REMEMBERED)
        """Stored names, and when they were stored."""
        self._topics: LruCache[Target, None] = LruCache(_REMEMBERED)
        """Topics whose name is stored."""
        self._known_names = names

    def sort(self, batch: Sequence[Inbound]) -> ClassifiedMessages:
        """Classify each message, without storing anything."""
        result = ClassifiedMessages()
        for message in batch:
            if isinstance(message, InboundMessage) and message.album and message.addressed:
                self._albums[message.target, message.album] = None
        for arrived in batch:
            try:
                self._sort_one(arrived, result)
            except Exception:
                # A boundary: what one of them meets would come again with all others, for ever.
                log.exception("inbound_event_skipped")
        return result

    def _sort_one(self, arrived: Inbound, result: ClassifiedMessages) -> None:
        match arrived:
            case InboundMessage():
                self._sort(self._whole(self._by_actor(arrived)), result)
            case ChatMigrated():
                # What comes behind it in the batch is of the new chat already.
                old, new = _places(arrived)
                self._access_control.moved(old, new, listed=self._listed(old))
                result.events.append(arrived)
            case ChatReached():
                result.events.append(arrived)
            case TopicChanged(target):
                # What happens in the groups of strangers is not stored.
                rules = self._policies.rules(target).access
                decided = self._access_control.decided(target)
                if arrived.peer is PeerKind.GROUP and hears_group(rules, decided=decided):
                    result.events.append(arrived)
            case _:
                assert_never(arrived)

    def _by_actor(self, message: InboundMessage) -> InboundMessage:
        """Return a message with who has sent it, whatever its channel says (SPEC SEC-9).

        Nobody on channels whose people are not all operators: there the chat names them. Nor what
        is no command: it changes nothing that is recorded.
        """
        by = acting() if self._policies.rules(message.target).access.trusted else None
        if by is not None and our_command_of(message) is None:
            by = None
        return message if message.by == by else replace(message, by=by)

    async def enter(self, batch: ClassifiedMessages) -> None:
        """Store chats and topics; may be repeated. Raises ``StoreUnavailable``."""
        now = self._clock.now()
        for event in batch.events:
            match event:
                case ChatMigrated():
                    await self._move(event, now)
                case ChatReached(target, peer, gone, name):
                    if name:
                        await self._store.note_chats([SeenChat(target, peer, name)], now=now)
                    await self._store.mark_chat(target, peer, gone=gone, now=now)
                case TopicChanged():
                    await self._note_topic(event, now)
                case _:
                    assert_never(event)
        if batch.seen:
            await self._store.note_chats(batch.seen, now=now)
        if batch.names:
            await self._store.note_names(batch.names, now=now)
        if batch.unmentioned:
            await self._store.note_unmentioned(batch.unmentioned, now=now)
        batch.pairings = await self._requests.of(batch.asking)

    async def _note_topic(self, event: TopicChanged, now: datetime) -> None:
        target = event.target
        if event.place_name:
            seen = SeenChat(target.whole_chat, event.peer, event.place_name)
            await self._store.note_chats([seen], now=now)
        await self._store.note_topic(
            target, name=event.name, renamed=event.renamed, state=event.state
        )

    async def _move(self, event: ChatMigrated, now: datetime) -> None:
        """Move everything of a chat to its new id, including the settings' decision.

        So the group is answered before the settings are edited.
        """
        channel, account, old, new = event.channel, event.account, event.old, event.new
        if await self._store.move_chat(channel, account, old=old, new=new, now=now):
            log.info("chat_moved", extra={"chat": old, "new_chat": new})
        listed = self._listed(_places(event)[0])
        if listed is not None:
            log.warning("group_id_outdated", extra={"chat": old, "new_chat": new})
            await self._store.allow_chat(channel, account, new, allowed=listed, now=now)

    def _listed(self, place: Target) -> bool | None:
        """Return the settings' decision about a group."""
        return self._policies.rules(place).access.listed

    def committed(self, rows: Sequence[NewInbox], duplicates: Container[str]) -> None:
        """Handle that messages are stored; ``duplicates`` (external ids) were stored before."""
        for channel, _, name in {external_id(row.message) for row in rows}:
            if name not in duplicates:
                self._meter.received(channel)

    def entered(self, batch: ClassifiedMessages) -> None:
        """Handle that the whole batch is committed."""
        self._requests.committed(batch.pairings)
        self._requests.refuse(batch.refused)
        for seen in batch.seen:
            self._noted[seen.target] = self._clock.now()
        known: dict[Target, str] = {}
        for named in batch.names:
            self._names[named.target] = named, self._clock.now()
            known[named.target] = shown_name(named.name, named.username)
        for event in batch.events:
            if isinstance(event, TopicChanged) and event.name:
                self._topics[event.target] = None
                known[event.target] = event.name
        if known:
            self._known_names.add(KnownNames(known))

    def forget_names(self) -> None:
        """Forget which names are stored: some were deleted, perhaps by another node."""
        self._names.clear()
        self._topics.clear()
        self._known_names.clear()

    def _sort(self, message: InboundMessage, result: ClassifiedMessages) -> None:
        rules = self._policies.rules(message.target)
        known = self._access_control.known(message.target)
        chat = message.target.whole_chat
        decided = self._access_control.decided(chat)
        verdict = access(message, rules.access, known, decided=decided)
        if message.press is not None and verdict is not AccessDecision.ALLOWED:
            result.refused.append(message)
            return
        match verdict:
            case AccessDecision.ALLOWED:
                if decided is None:
                    self._note_talk(message, rules.access, known, result)
                if self._access_control.is_gone(chat):
                    result.events.append(ChatReached(chat, message.peer))
                self._note_topic_of(message, result)
                self._note_names(message, result)
                if rules.access.trusted:
                    self._note_title(message, result)
                result.admitted.append((message, rules))
            case AccessDecision.PAIR:
                result.asking.append(message)
            case AccessDecision.UNKNOWN_GROUP:
                self._note_group(SeenChat(chat, message.peer, message.place_name), message, result)
            case AccessDecision.UNMENTIONED:
                self._note_unmentioned(message, rules, result)
            case AccessDecision.IGNORED:
                log.debug("message_ignored", extra={"channel": message.target.channel})
            case never:
                assert_never(never)

    def _is_context(self, message: InboundMessage, rules: ChatRules) -> bool:
        """Return whether it may be context for the agent: not from denied senders (CHAN-12)."""
        sender = replace(message.target, chat=message.sender.id, thread=None)
        return rules.context_messages > 0 and self._access_control.decided(sender) is not False

    def _note_topic_of(self, message: InboundMessage, result: ClassifiedMessages) -> None:
        """Record the topic of a message as open, with its name."""
        target = message.target
        was_gone = self._access_control.is_topic_gone(target)
        if was_gone or (message.topic_name and target not in self._topics):
            state = TopicState.OPEN if was_gone else None
            event = TopicChanged(target, message.peer, message.topic_name, state=state)
            result.events.append(event)

    def _note_names(self, message: InboundMessage, result: ClassifiedMessages) -> None:
        """Record the names of the sender and the chat; a direct chat has its sender's."""
        if message.source:
            return
        chat, sender = message.target.whole_chat, message.sender
        direct = chat if chat.chat == sender.id else replace(chat, chat=sender.id)
        named = [SeenName(direct, sender.name, sender.username)]
        if message.peer is PeerKind.GROUP:
            named.append(SeenName(chat, message.place_name))
        elif direct is not chat:
            named.append(replace(named[0], target=chat))
        for one in named:
            stored, at = self._names.get(one.target, (None, self._clock.now()))
            is_known = one == stored and self._clock.now() - at < _NAMED_AGAIN
            if (one.name or one.username) and not is_known:
                result.names.append(one)

    def _note_title(self, message: InboundMessage, result: ClassifiedMessages) -> None:
        """Guess the title of a conversation that has a made name: the first words in it."""
        chat = message.target.whole_chat
        is_said = not (message.source or message.press or command_head(message.text))
        if not (is_made_name(chat.chat) and is_said) or chat in self._names:
            return
        if title := title_from(message.text, [file.name for file in message.attachments]):
            result.names.append(SeenName(chat, title, kind=NameKind.GUESSED))

    def forget_title(self, chat: Target) -> None:
        """Handle that a conversation was deleted, with its title."""
        self._names.pop(chat, None)

    def _note_talk(
        self,
        message: InboundMessage,
        rules: AccessRules,
        known: Container[str],
        result: ClassifiedMessages,
    ) -> None:
        """Record chats of people without approval, so that operators can see them."""
        sender, name = message.sender, message.place_name
        if message.peer is PeerKind.DIRECT:
            if sender.id in known or sender.id in rules.allow:
                return
            name = f"{sender.name} (@{sender.username})" if sender.username else sender.name
        if not rules.trusted:
            self._note(SeenChat(message.target.whole_chat, message.peer, name), result)

    def _note_unmentioned(
        self, message: InboundMessage, rules: ChatRules, result: ClassifiedMessages
    ) -> None:
        """Record when a group had a message (OPS-4), and the message as context (CHAN-12)."""
        now, chat = self._clock.now(), message.target.whole_chat
        heard = self._unmentioned.get(chat)
        if heard is None or now - heard >= _UNMENTIONED_AGAIN:
            self._unmentioned[chat] = now
            seen = SeenChat(chat, message.peer, message.place_name, unmentioned=True)
            result.seen.append(seen)
        if self._is_context(message, rules):
            session = chat_session(rules.agent, message.target, message.peer)
            result.unmentioned.append(Unmentioned(message, session, rules.context_messages))

    def _note_group(
        self, seen: SeenChat, message: InboundMessage, result: ClassifiedMessages
    ) -> None:
        """Record an undecided group, so that owners and operators can decide."""
        is_first = seen.target not in self._noted
        if self._note(seen, result):
            result.asking.append(message)
        if is_first:
            facts = {
                "chat": seen.target.chat,
                "group": seen.name,
                "hint": "goclaw people groups list",
            }
            log.info("group_undecided", extra=facts)

    def _note(self, seen: SeenChat, result: ClassifiedMessages) -> bool:
        """Record a chat, once an hour; return whether that is due."""
        noted = self._noted.get(seen.target)
        is_due = noted is None or self._clock.now() - noted >= _NOTED_AGAIN
        if is_due:
            result.seen.append(seen)
        return is_due

    def _whole(self, message: InboundMessage) -> InboundMessage:
        """Return a part of an album or split text, addressed as the whole is."""
        key = message.target, message.sender.id
        cut_at = self._cut.pop(key, None)
        belongs = cut_at is not None and message.sent_at - cut_at <= _REST_WITHIN
        belongs = belongs or external_id(message) in self._rests
        if message.album and (message.target, message.album) in self._albums:
            belongs = True
        if belongs and not message.addressed:
            self._rests[external_id(message)] = None
            message = replace(message, addressed=True)
        if message.cut and message.addressed:
            self._cut[key] = message.sent_at
        return message


def _places(event: ChatMigrated) -> tuple[Target, Target]:
    """Return the old and the new target of a chat."""
    old, new = (Target(event.channel, event.account, chat) for chat in (event.old, event.new))
    return old, new


def with_new_apart(batch: Sequence[Inbound], channels: Mapping[Place, Channel]) -> list[Inbound]:
    """Return a batch in which ``/new`` and the message behind it are two (SPEC CMD-5)."""
    apart: list[Inbound] = []
    for one in batch:
        if isinstance(one, InboundMessage) and command_head(one.text) is not None:
            handle = channels[one.target.channel, one.target.account].handle
            apart += split_new(one, handle)
        else:
            apart.append(one)
    return apart

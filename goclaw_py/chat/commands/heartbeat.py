"""Chat commands for the heartbeat of an agent: ``/heartbeat``, ``/mute`` (CMD-5)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, HelpGroup, OwnersOnly
from goclaw_py.chat.outbound.places import chat_words
from goclaw_py.core.chat_commands import TypedCommand, our_command
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import HeartbeatError
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.messages import InboundMessage, Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.targets import owner_of
from goclaw_py.core.text import is_blank
from goclaw_py.core.time.texts import ChatZone
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.records import ChatStore, InboxRow
from goclaw_py.schedule.heartbeat import chat_texts as words
from goclaw_py.schedule.heartbeat.checklist.checklist import as_item, open_item
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus, NoHeartbeat
from goclaw_py.schedule.heartbeat.mute import mute_end
from goclaw_py.schedule.heartbeat.status_texts import current_run, status_lines, why
from goclaw_py.schedule.heartbeat.views import GUEST, OWNER, HeartbeatView, Reader

log = logging.getLogger(__name__)

_FOR_ALL: Final = frozenset({"", "why"})
"""Actions that change nothing."""

_WORDS_READ: Final = {"on": 1, "off": 1, "now": 1, "why": 1, "show": 1, "done": 2}
"""How many words are read, with the action; all of any other."""

_LISTS: Final = 1000
"""The number of chats whose last list is stored."""


@dataclass(slots=True)
class _Seen:
    """The open items that a chat saw last, and the numbers checked off since."""

    items: tuple[str, ...]
    ticked: set[int] = field(default_factory=set)


class HeartbeatChatStore(ChatStore, Protocol):
    """The store operations that this module needs."""

    async def zone_of(self, owner: Owner) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _Request:
    """A command, with the service and the agent; ``chosen``: the time zone chosen in its chat."""

    service: HeartbeatService
    agent: AgentName
    row: InboxRow
    text: str
    chosen: str | None
    is_by_owner: bool

    def here(self, view: HeartbeatView) -> HeartbeatView:
        """Return the view with times in the time zone of the chat."""
        return replace(view, policy=replace(view.policy, zone=self.zone(view).name))

    def zone(self, view: HeartbeatView) -> ChatZone:
        """Return the time zone of the chat; where none was chosen, that of the heartbeat."""
        return ChatZone(self.chosen or view.policy.zone, is_chosen=self.chosen is not None)

    async def view(self) -> HeartbeatView:
        """Return the state of the heartbeat. Raises ``StoreUnavailable``."""
        return self.here(await self.service.view(self.agent))


_Act = Callable[[_Request], Awaitable[str]]


class HeartbeatCommands:
    """Executes the commands: everyone with access may see its state, owners the rest.

    What it checks and what it has found is private to the owners.

    A command is executed again after a crash or an outage before its end was stored, so each is
    idempotent. Every method may raise ``StoreUnavailable``.
    """

    def __init__(
        self,
        service: HeartbeatService | None,
        store: HeartbeatChatStore,
    ) -> None:
        self._service = service
        self._store = store
        self._lists: LruCache[tuple[Target, AgentName], _Seen] = LruCache(_LISTS)
        """The lists that chats saw last, because items may have been added or removed since."""
        self._acts: Mapping[str, _Act] = {
            "": self._status,
            "why": self._why,
            "show": self._show,
            "on": partial(self._switch, on=True),
            "off": partial(self._switch, on=False),
            "now": self._now,
            "add": self._add,
            "done": self._done,
        }

    def is_for_owners(self, command: TypedCommand) -> bool:
        """Return whether a command changes something, or shows what the heartbeat checks."""
        if self._service is None:
            return False
        if command.name == "mute":
            return bool(command.line)
        return command.action in self._acts and command.action not in _FOR_ALL

    async def answer(self, row: InboxRow, command: TypedCommand, *, owner: bool) -> str:
        """Execute ``/heartbeat`` or ``/mute``; return the answer."""
        if self._service is None:
            return words.NONE
        act: _Act | None
        if command.name == "mute":
            text, act = command.line.lower(), self._mute if command.line else self._mute_status
        else:
            act = self._acts.get(command.action)
            if act is None:
                return words.unknown_action(command.action)
            # An item of several lines is still one item.
            said = _item(command, row.message) if command.action == "add" else command.line
            text = said.partition(" ")[2]
        message = row.message
        zone = await self._store.zone_of(owner_of(message.target, message.peer))
        try:
            return await act(_Request(self._service, row.agent, row, text, zone, owner))
        except HeartbeatError as error:
            return words.refused(error)

    async def alerts(self, row: InboxRow) -> str:
        """Return where alerts of the agent go, for an owner in a chat; "" if nowhere."""
        if self._service is None:
            return ""
        try:
            view = await self._service.view(row.agent)
        except HeartbeatError:
            return ""
        return words.alerts(view, await self._reader(view, row.message.target, owner=True))

    async def _reader(self, view: HeartbeatView, here: Target, *, owner: bool) -> Reader:
        """Return the reader of a chat, with the names of the chats in a view."""
        reader = OWNER if owner else GUEST
        last = None if view.last is None else view.last.target
        targets = {target for target in (view.route.target, last) if target is not None}
        if not owner:
            # Guests learn nothing of other chats.
            targets &= {here}
        return replace(
            reader, places={one: await chat_words(self._store, one, here) for one in targets}
        )

    # ------------------------------------------------------------------ heartbeat runs

    async def _status(self, request: _Request) -> str:
        view, reader = await self._read(request)
        lines = status_lines(view, reader)
        how = [words.HOW] if request.is_by_owner else []
        return "\n".join([*lines, *request.zone(view).note(lines), *how])

    async def _why(self, request: _Request) -> str:
        view, reader = await self._read(request)
        lines = why(view, reader)
        return "\n".join([*lines, *request.zone(view).note(lines)])

    async def _read(self, request: _Request) -> tuple[HeartbeatView, Reader]:
        view, here = await request.view(), request.row.message.target
        if view.last is not None and not request.is_by_owner:
            view = replace(view, last=replace(view.last, detail="", undelivered=""))
        return view, await self._reader(view, here, owner=request.is_by_owner)

    async def _switch(self, request: _Request, *, on: bool) -> str:
        view = await request.service.switch(request.agent, on=on)
        log.info("heartbeat_switched_in_chat", extra=_facts(request) | {"on": on})
        return words.switched(view, request.zone(view))

    async def _now(self, request: _Request) -> str:
        view = await request.view()
        if _has_begun(view, since=request.row.received_at):
            current = view.current
            waits = current is not None and current.status is HeartbeatRunStatus.DEFERRED
            return words.begun(view, waits=waits)
        if not view.heartbeat.is_on:
            return words.off(view)
        report = await request.service.dry_run(request.agent)
        match await request.service.run_now(request.agent):
            case NoHeartbeat.ALREADY_RUNNING:
                view, reader = await self._read(request)
                return current_run(view, reader) or words.ALREADY_RUNNING
            case NoHeartbeat.OFF:
                return words.NOT_CARRIED_OUT
            case _:
                log.info("heartbeat_run_in_chat", extra=_facts(request))
                waits = report.status is HeartbeatRunStatus.DEFERRED
                return words.begun(view, waits=waits)

    # ------------------------------------------------------------------ mute

    async def _mute_status(self, request: _Request) -> str:
        view = await request.view()
        return words.muted(view, request.zone(view), owner=request.is_by_owner)

    async def _mute(self, request: _Request) -> str:
        view = await request.view()
        # From when it was asked for: a second time must not make it longer.
        asked_at = request.row.received_at
        until = mute_end(request.text, now=asked_at, zone=view.policy.zone)
        if until is None:
            await request.service.mute(request.agent, None)
            log.info("heartbeat_unmuted_in_chat", extra=_facts(request))
            return words.UNMUTED
        if until <= view.now:
            return words.MUTE_IS_OVER
        view = await request.service.mute(request.agent, until)
        log.info("heartbeat_muted_in_chat", extra=_facts(request) | {"until": until.isoformat()})
        return words.muted(view, request.zone(view))

    # ------------------------------------------------------------------ checklist

    async def _show(self, request: _Request) -> str:
        checklist = await request.service.checklist(request.agent)
        items = tuple(item.text for item in checklist.items)
        self._lists[request.row.message.target, request.agent] = _Seen(items)
        return words.checklist(checklist, request.agent)

    async def _add(self, request: _Request) -> str:
        if is_blank(request.text):
            return words.HOW_ADD
        item = as_item(request.text)
        if open_item(await request.service.checklist(request.agent), item) is None:
            await request.service.add_item(request.agent, request.text)
            log.info("checklist_item_added_in_chat", extra=_facts(request))
        return words.added(item)

    async def _done(self, request: _Request) -> str:
        """Check off the item that the number meant when the chat saw it.

        Items may have gone since, also by this very command.
        """
        given = request.text.split(maxsplit=1)[0] if request.text else ""
        if not (given.isascii() and given.isdigit()):
            return words.HOW_DONE
        place = request.row.message.target, request.agent
        seen = self._lists.get(place)
        number = int(given[:9])
        if seen is None or not 1 <= number <= len(seen.items):
            shown = await self._show(request)
            return words.list_again(shown) if self._lists[place].items else shown
        text = seen.items[number - 1]
        if number in seen.ticked:
            return words.done(text)
        now = await request.service.checklist(request.agent)
        same = open_item(now, text)
        if same is None:
            return words.not_open(text)
        await request.service.complete_item(request.agent, same.number, version=now.version)
        seen.ticked.add(number)
        log.info("checklist_item_completed_in_chat", extra=_facts(request))
        return words.done(text)


def _item(command: TypedCommand, message: InboundMessage) -> str:
    """Return the words of ``/heartbeat add``, with the addresses behind them."""
    formatted = our_command(message.formatted)
    if isinstance(formatted, TypedCommand) and formatted.action == command.action:
        return formatted.message
    return command.message


def _has_begun(view: HeartbeatView, *, since: datetime) -> bool:
    """Return whether a manual run has started since: this command was executed before."""
    return any(
        heartbeat_run is not None
        and heartbeat_run.kind is HeartbeatRunKind.MANUAL
        and heartbeat_run.claimed_at >= since
        for heartbeat_run in (view.current, view.last)
    )


def _facts(request: _Request) -> dict[str, object]:
    return {"session": request.row.session, "agent": request.agent}


async def _answer(use: CommandUse) -> str:
    return await use.services.heartbeats.answer(use.row, use.command, owner=use.is_by_owner)


_WHO = OwnersOnly(
    words.NOT_AN_OWNER, when=lambda use: use.services.heartbeats.is_for_owners(use.command)
)

COMMANDS = (
    ChatCommand(
        "heartbeat",
        _WHO,
        HelpGroup.HEARTBEAT,
        _answer,
        lambda command: _WORDS_READ.get(command.action),
    ),
    ChatCommand(
        "mute", _WHO, HelpGroup.HEARTBEAT, _answer, lambda command: len(command.line.split())
    ),
)

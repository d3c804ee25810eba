"""Asks people about tool calls, and applies their answers (SPEC AGENT-11)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import (
    NO_CONTEXT,
    Approval,
    ApprovalContext,
    Asker,
    Decision,
    about_approval,
)
from goclaw_py.core.chat_commands import (
    ApprovalButton,
    Pressed,
    TypedCommand,
    approval_buttons,
    rule_buttons,
)
from goclaw_py.core.display_names import operator_in
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.ids import AgentName, ApprovalId, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Target
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.text import first_words, visible_line
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import ApprovalQuery, InboxRow, NewApproval
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.approval_port import ApprovalChat, Questions, decide
from goclaw_py.runs.session_settings import SessionSettings

_TYPED = {
    "": Decision.ONCE,
    "once": Decision.ONCE,
    "conversation": Decision.SESSION,
    "session": Decision.SESSION,
    "always": Decision.ALWAYS,
}


_PAST = 200
"""The number of earlier questions of a session that are counted."""
_REQUEST_CHARS = 200
_SAID_CHARS = 20_000


class ToolApprovals:
    """The questions of runs, and the answers of people.

    Args:
        owners_chats: Returns the last direct chats of the owners.
        hide: Masks secrets in the arguments of a call.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        policies: SessionSettings,
        access_control: AccessControl,
        owners_chats: Callable[[], Awaitable[Sequence[Target]]],
        hide: Callable[[str], str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._access_control = access_control
        self._owners_chats = owners_chats
        self._hide = hide

    # ------------------------------------------------------------------ asking

    async def questions(
        self, needed: ApprovalNeeded, agent: AgentName, chat: ApprovalChat | None
    ) -> Questions:
        """Return what is stored with the end of a run that asks.

        The chat of the run is asked, if an owner can answer there; otherwise the owners of its
        account are, in their own chats. Without a chat, or owners of its account, all owners are.
        """
        now, approvals, say = self._clock.now(), [], []
        past: Sequence[Approval]
        here, job = (None, "") if chat is None else (chat.target, chat.job)
        known, past = NO_CONTEXT, ()
        if chat is not None and needed.requests:
            known, past = await self._context(chat), await self._answered(chat.session)
        asked = here if chat is not None and self._has_owner(chat) else None
        places: Sequence[Target] = () if asked is None else (asked,)
        if needed.requests and asked is None:
            places = [
                place
                for place in await retry_until_available(self._owners_chats)
                if known.account in ("", _account(place))
            ]
        # All of them are asked at one time: their ids have the order of the calls.
        ids = sorted(secrets.token_hex(8) for _ in needed.requests)
        for approval_id, request in zip(map(ApprovalId, ids), needed.requests, strict=True):
            shown = replace(request, arguments=self._hide(request.arguments))
            expires_at = now + timedelta(seconds=request.timeout_s)
            before = [
                one.decision
                for one in past
                if one.decision is not None
                and (one.agent, one.request.tool) == (agent, request.tool)
            ]
            context = replace(
                known,
                allowed=sum(one.allows for one in before),
                denied=before.count(Decision.DENY),
            )
            approvals.append(NewApproval(approval_id, shown, expires_at, asked, context))
            own = chat.session if chat is not None and asked is not None else None
            text = approval_texts.question(shown, context, own)
            buttons = approval_buttons(request.decisions, approval_id)
            about = about_approval(approval_id)
            say += [OutboundMessage(place, text, buttons=buttons, alert=about) for place in places]
        if approvals and asked is None and here is not None:
            calls = [one.request for one in approvals]
            waits = approval_texts.waits_elsewhere(calls, job, asks_owners=bool(places))
            # The answer is added to it; several calls have several answers.
            about = about_approval(approvals[0].id) if len(approvals) == 1 else ""
            say.insert(0, OutboundMessage(here, waits, alert=about))
        return Questions(tuple(approvals), tuple(say))

    async def _answered(self, session: SessionKey) -> Sequence[Approval]:
        """Return the newest questions of a session."""
        query = ApprovalQuery(session, waiting=False, limit=_PAST)
        return await self._store.retried.approvals(query)

    async def _context(self, chat: ApprovalChat) -> ApprovalContext:
        """Return who asks in a chat, and for what."""
        people: dict[Target, str] = {}
        for row in chat.rows:
            message = row.message
            person = replace(message.target.whole_chat, chat=message.of_whom)
            people.setdefault(person, "" if message.source else access_texts.name(message.sender))
        if not chat.rows and chat.creator:
            people[Target(*chat.creator.split("/", 2))] = ""
        elif not chat.rows and not chat.job and chat.target is not None and chat.sender:
            people[replace(chat.target.whole_chat, chat=chat.sender)] = ""
        here = None if chat.target is None else chat.target.whole_chat
        wanted = {*people, *(() if here is None else (here,))}
        names = (await self._store.retried.names(wanted)).targets
        said = chat.request or " ".join(row.message.text for row in chat.rows)
        place = ""
        if here is not None:
            title = access_texts.clean(names.get(here, here.chat))
            is_group = chat.peer is PeerKind.GROUP
            place = f"group “{title}”" if is_group else f"direct chat ({here.channel})"
            if operator_in(here) and here in names:
                place = f"conversation “{title}”"
        return ApprovalContext(
            tuple(
                Asker(
                    operator_in(one) or name or access_texts.clean(names.get(one, one.chat)),
                    self._is_guest(one),
                )
                for one, name in people.items()
            ),
            place,
            visible_line(first_words(self._hide(said), _REQUEST_CHARS)),
            access_texts.clean(chat.job),
            account="" if here is None else self._answering(here),
            said=self._hide(chat.said)[:_SAID_CHARS],
        )

    def _answering(self, chat: Target) -> str:
        """Return the account whose owners answer for a chat; "" if it has none, as the web chat."""
        rules = self._policies.rules(chat).access
        return _account(chat) if self._access_control.has_owners(chat, rules) else ""

    def _is_guest(self, person: Target) -> bool:
        rules = self._policies.rules(person).access
        return not self._access_control.is_owner(person, person.chat, rules)

    def _has_owner(self, chat: ApprovalChat) -> bool:
        """Return whether an owner can answer in a chat; in a group there may be one."""
        if chat.target is None or chat.peer is PeerKind.GROUP:
            return chat.target is not None
        rules = self._policies.rules(chat.target).access
        return self._access_control.is_owner(chat.target, chat.sender, rules)

    # ------------------------------------------------------------------ answering

    async def press(self, row: InboxRow, button: ApprovalButton) -> Pressed:
        """Apply the answer of a person who may give it. Raises ``StoreUnavailable``.

        “Always allow” first shows the rule that it adds, with buttons of its own.
        """
        asked = await self._store.approval(button.approval)
        if asked is not None and not self._may_answer(asked, row.message):
            return Pressed("", is_used=False, toast=approval_texts.NOT_ALLOWED)
        decision = button.decision
        if asked is None or decision not in (None, *asked.request.decisions):
            return Pressed("", is_used=True, toast=approval_texts.TOO_LATE)
        if decision is Decision.ALWAYS and not self._is_owner(row.message):
            return Pressed("", is_used=False, toast=approval_texts.ALWAYS_NOT_ALLOWED)
        if decision is None or (decision is Decision.ALWAYS and not button.is_sure):
            if asked.decision is not None or asked.expires_at <= self._clock.now():
                return Pressed("", is_used=True, toast=approval_texts.TOO_LATE)
            return _shown(asked, rule=decision is not None)
        done = await self._decide(asked, decision, access_texts.name(row.message.sender))
        if done is None:
            return Pressed("", is_used=True, toast=approval_texts.TOO_LATE)
        return Pressed("", is_used=True, toast=approval_texts.answer(decision, done))

    async def answer(self, row: InboxRow, command: TypedCommand) -> str:
        """Answer the oldest question of a chat, as typed. Raises ``StoreUnavailable``."""
        here = ApprovalQuery(row.session, asked_in=row.message.target)
        waiting = await self._store.approvals(here)
        if not waiting:
            return approval_texts.NOTHING_WAITS
        asked = waiting[-1]
        if not self._may_answer(asked, row.message):
            return approval_texts.NOT_ALLOWED
        decision = Decision.DENY if command.name == "deny" else _TYPED.get(command.action)
        if asked.request.uncertain:
            decision = Decision.SKIP if command.name == "deny" else Decision.AGAIN
        if decision is None:
            return approval_texts.USAGE
        if decision is Decision.ALWAYS:
            if not self._is_owner(row.message):
                return approval_texts.ALWAYS_NOT_ALLOWED
            tool = asked.request.tool
            # The name of the tool: another question may be the oldest one meanwhile.
            if command.line.split()[1:] != [tool]:
                return approval_texts.rule_question(asked.agent, tool, f"/approve always {tool}")
        name = await self._decide(asked, decision, access_texts.name(row.message.sender))
        if name is None:
            return approval_texts.TOO_LATE
        return f"{asked.request.tool}: {approval_texts.answer(decision, name)}"

    async def _decide(self, approval: Approval, decision: Decision, by: str) -> str | None:
        """Apply an answer; return who gave it, None if it came too late."""
        done = await decide(self._store, approval, decision, by=by, now=self._clock.now())
        return None if done is None else done.decided_by

    def _may_answer(self, approval: Approval, message: InboundMessage) -> bool:
        """Return whether a person may answer; the data of a button can be forged."""
        target, chat = message.target, approval.target
        account = approval.context.account if chat is None else _account(chat)
        if account not in ("", _account(target)):
            return False
        is_there = chat is not None and chat.chat == target.chat
        if approval.request.members and is_there and message.peer is PeerKind.GROUP:
            return True
        return self._is_owner(message)

    def _is_owner(self, message: InboundMessage) -> bool:
        rules = self._policies.rules(message.target).access
        return self._access_control.is_owner(message.target, message.sender.id, rules)


def _account(target: Target) -> str:
    return f"{target.channel}/{target.account}"


def _shown(approval: Approval, *, rule: bool) -> Pressed:
    """Return the rule that “always allow” adds, or the question again."""
    if rule:
        text = approval_texts.rule_question(approval.agent, approval.request.tool)
        buttons = rule_buttons(approval.id)
        return Pressed(text, is_used=False, toast=approval_texts.LOOK, buttons=buttons)
    own = approval.session if approval.target is not None else None
    text = approval_texts.question(approval.request, approval.context, own)
    buttons = approval_buttons(approval.request.decisions, approval.id)
    return Pressed(text, is_used=False, toast=approval_texts.NOT_DECIDED, buttons=buttons)

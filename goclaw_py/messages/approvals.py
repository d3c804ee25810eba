"""Asks people about tool calls, and applies their answers (SPEC AGENT-11)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from goclaw_py.chats import access_texts
from goclaw_py.chats.access_control import AccessControl
from goclaw_py.chats.session_settings import SessionSettings
from goclaw_py.common.retry import retry_until_available
from goclaw_py.delivery import approval_texts
from goclaw_py.model.approvals import Approval, Decision, about_approval
from goclaw_py.model.chat_commands import ApprovalButton, Pressed, TypedCommand, approval_buttons
from goclaw_py.model.errors import ApprovalNeeded
from goclaw_py.model.ids import AgentName, ApprovalId
from goclaw_py.model.messages import InboundMessage, OutboundMessage, PeerKind, Target
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import ApprovalStore, InboxRow, NewApproval
from goclaw_py.runs.approval_port import AskedChat, Questions

log = logging.getLogger(__name__)

_TYPED = {
    "": Decision.ONCE,
    "once": Decision.ONCE,
    "session": Decision.SESSION,
    "always": Decision.ALWAYS,
}


class ToolApprovals:
    """The questions of runs, and the answers of people.

    Args:
        owners_chats: Returns the last direct chats of the owners.
        hide: Masks secrets in the arguments of a call.
    """

    def __init__(
        self,
        store: ApprovalStore,
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
        self, needed: ApprovalNeeded, agent: AgentName, chat: AskedChat | None
    ) -> Questions:
        """Return what is stored with the end of a run that asks.

        The chat of the run is asked, if an owner can answer there; otherwise the owners are, in
        their own chats.
        """
        now, approvals, say = self._clock.now(), [], []
        here, job = (None, "") if chat is None else (chat.target, chat.job)
        asked = here if chat is not None and self._has_owner(chat) else None
        places: Sequence[Target] = () if asked is None else (asked,)
        if needed.requests and asked is None:
            places = await retry_until_available(self._owners_chats)
            if here is not None:
                waits = approval_texts.waits_elsewhere(job, asks_owners=bool(places))
                say.append(OutboundMessage(here, waits))
        for request in needed.requests:
            shown = replace(request, arguments=self._hide(request.arguments))
            approval_id = ApprovalId(secrets.token_hex(8))
            expires_at = now + timedelta(seconds=request.timeout_s)
            approvals.append(NewApproval(approval_id, shown, expires_at, asked))
            text = approval_texts.question(shown, agent, job)
            buttons = approval_buttons(request.decisions, approval_id)
            about = about_approval(approval_id)
            say += [OutboundMessage(place, text, buttons=buttons, alert=about) for place in places]
        return Questions(tuple(approvals), tuple(say))

    def _has_owner(self, chat: AskedChat) -> bool:
        """Return whether an owner can answer in a chat; in a group there may be one."""
        if chat.target is None or chat.peer is PeerKind.GROUP:
            return chat.target is not None
        rules = self._policies.rules(chat.target).access
        return self._access_control.is_owner(chat.target, chat.sender, rules)

    # ------------------------------------------------------------------ answering

    async def press(self, row: InboxRow, button: ApprovalButton) -> Pressed:
        """Apply the answer of a person who may give it. Raises ``StoreUnavailable``."""
        asked = await self._store.approval(button.approval)
        if asked is not None and not self._may_answer(asked, row.message):
            return Pressed("", is_used=False, toast=approval_texts.NOT_ALLOWED)
        if asked is None or button.decision not in asked.request.decisions:
            return Pressed("", is_used=True, toast=approval_texts.TOO_LATE)
        done = await self._decide(asked, button.decision, access_texts.name(row.message.sender))
        if done is None:
            return Pressed("", is_used=True, toast=approval_texts.TOO_LATE)
        return Pressed("", is_used=True, toast=approval_texts.answer(button.decision, done))

    async def answer(self, row: InboxRow, command: TypedCommand) -> str:
        """Answer the oldest question of a chat, as typed. Raises ``StoreUnavailable``."""
        waiting = await self._store.approvals(session=row.session, asked_in=row.message.target)
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
        name = await self._decide(asked, decision, access_texts.name(row.message.sender))
        if name is None:
            return approval_texts.TOO_LATE
        return f"{asked.request.tool}: {approval_texts.answer(decision, name)}"

    async def _decide(self, asked: Approval, decision: Decision, by: str) -> str | None:
        """Apply an answer; return who gave it, None if it came too late."""
        done = await decide(self._store, asked, decision, by=by, now=self._clock.now())
        return None if done is None else done.decided_by

    def _may_answer(self, asked: Approval, message: InboundMessage) -> bool:
        """Return whether a person may answer; the data of a button can be forged."""
        target, chat = message.target, asked.target
        if chat is not None and (chat.channel, chat.account) != (target.channel, target.account):
            return False
        is_there = chat is not None and chat.chat == target.chat
        if asked.request.members and is_there and message.peer is PeerKind.GROUP:
            return True
        rules = self._policies.rules(target).access
        return self._access_control.is_owner(target, message.sender.id, rules)


async def decide(
    store: ApprovalStore, asked: Approval, decision: Decision, *, by: str, now: datetime
) -> Approval | None:
    """Apply an answer; ``by`` is "" for an operator. Returns None if it came too late."""
    done = await store.decide_approval(asked.id, decision, by=by, now=now)
    if done is not None:
        log.info(
            "approval_decided",
            extra={
                "approval": asked.id,
                "run_id": asked.run_id,
                "tool": asked.request.tool,
                "decision": decision,
            },
        )
    return done

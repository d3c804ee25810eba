"""Turns the reply of a heartbeat run into an alert or nothing (SPEC HB-6 to HB-8, HB-10).

The rules of SPEC HB-7:

Dedup: key = agent, target, text (token and markup removed, NFC, blanks collapsed); the same within
24 h of first delivery is `duplicate`, over restarts and processes; A, B, A sends A once. It counts
from confirmed delivery; a waiting alert counts as sent, a failed one does not. A failed one is told
in the next most recent chat, once, with the reason, by the names of chat and topic, and counts as
told there, so that the same is `duplicate` for 24 h; as long as there is none it is looked for
again, for 24 h.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from goclaw_py.chat.access.incident_alerts import IncidentAlerts
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.albums import in_albums
from goclaw_py.chat.outbound.ok_token import AckResult, alert_key, is_silent, judge, without_token
from goclaw_py.chat.outbound.places import place_name, where_read
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.errors import StoreError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import HistoryEntry, OutboundMessage, Role, Target
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.targets import target_text
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import OutboxState, Place
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.replies.replies import Replies
from goclaw_py.runs.tool_services import sessions_of
from goclaw_py.schedule.heartbeat import texts as wording_heartbeat
from goclaw_py.schedule.heartbeat.alert_targets import NOWHERE, AlertTargetResolver, ResolvedTarget
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, NoTarget
from goclaw_py.schedule.heartbeat.execution import HeartbeatExecution, HeartbeatOutcome
from goclaw_py.schedule.heartbeat.models import HeartbeatRunEnd, HeartbeatRunStatus, Undelivered
from goclaw_py.schedule.heartbeat.status_texts import SAME_WAITS
from goclaw_py.schedule.models import Attempt

log = logging.getLogger(__name__)

SAME_FOR: Final = timedelta(hours=24)
"""How long an alert with the same text is not repeated (SPEC HB-7)."""

_THIRD: Final = 3


class Alerts:
    """Evaluates replies, and formats alerts for their channels."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        channels: Mapping[Place, Channel],
        routes: AlertTargetResolver,
        replies: Replies,
        incidents: IncidentAlerts,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._routes = routes
        self._replies = replies
        self._incidents = incidents

    async def of(self, execution: HeartbeatExecution, attempt: Attempt) -> HeartbeatOutcome:
        """Return the outcome of a reply. Raises ``StoreUnavailable``.

        A reply with a file is an alert, whatever its text is.
        """
        policy, agent = execution.policy, execution.claimed.agent
        chars, place = policy.ack_max_chars, policy.ack_position
        judge_reply = partial(judge, attempt.text, ack_max_chars=chars, position=place)
        judged = await in_thread_if_long(len(attempt.text), judge_reply)
        if attempt.is_cut:
            # What it did not say might have been the alert.
            judged = AckResult(is_ok=False, text=without_token(attempt.text))
        if execution.done is not None:
            # The agent has said so with its tool, which wins over the words (SPEC HB-6).
            notify, words = execution.done
            judged = AckResult(not notify, without_token(words or attempt.text) if notify else "")
        elif is_silent(attempt.text):
            # As in jobs: what models know as silence is no alert.
            judged = AckResult(is_ok=True, text="")
        if judged.is_ok and not attempt.files:
            return HeartbeatOutcome(HeartbeatRunStatus.OK, _left_out(attempt.text), attempt.text)
        files, troubles = self._replies.sendable(attempt.files, agent, execution.run)
        text = "\n\n".join(filter(None, [judged.text, *troubles]))
        found = await self._routes.find(agent, policy)
        target = found.route.target
        if isinstance(policy.target, NoTarget):
            return HeartbeatOutcome(HeartbeatRunStatus.LOGGED, NOWHERE, attempt.text)
        if target is None:
            return HeartbeatOutcome(HeartbeatRunStatus.NO_ROUTE, found.route.problem, attempt.text)
        there = target_text(found.wanted or target)
        whole = _with_files(text, [file.name for file in files])
        key = await in_thread_if_long(len(whole), partial(alert_key, agent, there, whole))
        since = self._clock.now() - SAME_FOR
        known = await self._store.alert_state(key, since=since)
        if known is not None:
            detail = "it was told before" if known is OutboxState.SENT else SAME_WAITS
            return HeartbeatOutcome(HeartbeatRunStatus.DUPLICATE, detail, attempt.text, target)
        say = await self._messages(execution, target, self._whole(text, found), key)
        attach = partial(OutboundMessage, target, "", run_id=execution.run)
        attached = [attach(file=file, heartbeat_run=execution.id, alert=key) for file in files]
        say += in_albums(attached, self._channels.get((target.channel, target.account)))
        return HeartbeatOutcome(
            HeartbeatRunStatus.ALERTED,
            found.route.detail,
            attempt.text,
            target,
            tuple(say),
            text,
            found.wanted if found.instead_of else None,
        )

    def _whole(self, text: str, found: ResolvedTarget) -> str:
        """Return an alert with a line about why it goes to another chat than expected."""
        if not found.instead_of:
            return text
        return f"{text}\n\n{wording_heartbeat.fell_back(found.instead_of)}".strip()

    async def _messages(
        self, execution: HeartbeatExecution, target: Target, text: str, key: str
    ) -> list[OutboundMessage]:
        return [
            OutboundMessage(
                target, part, run_id=execution.run, rich=rich, heartbeat_run=execution.id, alert=key
            )
            for part, rich in await in_thread_if_long(len(text), partial(self._parts, target, text))
        ]

    def _parts(self, target: Target, text: str) -> list[tuple[str, bool]]:
        """Split a text for its channel; the flag tells whether a part is rich text."""
        # It also contains names of files and chats, which were not checked for the token.
        text = without_token(text)
        channel = self._channels.get((target.channel, target.account))
        if channel is None:
            return [(text, False)]
        return [(part, True) for part in channel.parts(text)]

    # ------------------------------------------------------------------ afterwards

    async def on_stored(
        self, execution: HeartbeatExecution, end: HeartbeatRunEnd, outcome: HeartbeatOutcome
    ) -> None:
        """Add a stored alert to the history of its chat, and notify owners of failures.

        If the database is unavailable, only the history is missing: the alert is in the outbox.
        """
        agent = execution.claimed.agent
        if outcome.say and outcome.target is not None and outcome.text:
            await self._remember(agent, outcome.target, outcome.text)
        if outcome.gone is not None:
            await self._store.notify_topic_gone(outcome.gone, (), now=self._clock.now())
        failures = execution.claimed.heartbeat.failures
        if end.failed and failures + 1 >= _THIRD:
            text = wording_heartbeat.failed_thrice(
                agent, end.finished_at, without_token(end.detail), execution.policy.zone
            )
            await retry_until_available(lambda: self._notify_failures(agent, text, failures + 1))
        elif end.failed is False and failures >= _THIRD:
            await self._store.retried.close_incident(_incident(agent))

    async def _notify_failures(self, agent: AgentName, text: str, failures: int) -> None:
        if failures == _THIRD:
            # Deliveries of earlier alerts may still be open, if a process died between two steps.
            await self._store.close_incident(_incident(agent))
        await self._incidents.alert(_incident(agent), text)

    async def _remember(self, agent: AgentName, target: Target, text: str) -> None:
        """Add an alert to the history of its chat, so that the agent understands answers to it."""
        entry = HistoryEntry(Role.ASSISTANT, wording_heartbeat.alerted_from(text))
        try:
            for session in sessions_of(agent, await where_read(self._store, target)):
                await self._store.note(session, entry, rows=(), now=self._clock.now())
        except StoreError as error:
            log.warning("history_not_updated", extra={"error": str(error), "agent": agent})

    async def notify_undelivered(
        self, policies: Mapping[AgentName, HeartbeatPolicy], places: Collection[Place]
    ) -> list[Undelivered]:
        """Send alerts that their channel refused to the next possible chat.

        Returns those without such a chat; recent ones are tried again. Raises ``StoreUnavailable``.
        """
        since = self._clock.now() - SAME_FOR
        return [
            lost
            for lost in await self._store.undelivered(tuple(policies), since=since)
            if (lost.target.channel, lost.target.account) in places
            and not await self._redirect(lost, policies[lost.agent])
        ]

    async def _redirect(self, lost: Undelivered, policy: HeartbeatPolicy) -> bool:
        """Send it to another chat; False if there is none."""
        found = await self._routes.find(lost.agent, policy, lost.target)
        target = found.route.target
        if target is None:
            return False
        now = self._clock.now()
        place = await place_name(self._store, lost.target)
        texts = [self._readable(message) for message in lost.said]
        said = "\n\n".join(filter(None, texts))
        key = await self._next_key(lost, policy, said)
        say = []
        if await self._store.alert_state(key, since=now - SAME_FOR) is None:
            # As it stands: what one channel has written as its own is no Markdown.
            head = wording_heartbeat.undelivered(place, lost.why, texts[0] if texts else "")
            parts = [head, *filter(None, texts[1:])]
            say = [OutboundMessage(target, part, alert=key) for part in parts]
        if await self._store.notify_undelivered(lost.heartbeat_run, say, now=now):
            facts = {"heartbeat_run": lost.heartbeat_run, "agent": lost.agent, "error": lost.why}
            log.warning("alert_redirected", extra=facts)
            await self._store.notify_topic_gone(lost.target, (), now=now)
            if say:
                text = wording_heartbeat.undelivered(place, lost.why, said)
                await self._remember(lost.agent, target, text)
        return True

    async def _next_key(self, lost: Undelivered, policy: HeartbeatPolicy, text: str) -> str:
        """Return the key of the same alert in its new chat, so that it is sent once (SPEC HB-7)."""
        found = await self._routes.find(lost.agent, policy)
        there = found.wanted or found.route.target
        if there == lost.target and lost.said:
            return lost.said[0].alert
        return alert_key(lost.agent, target_text(there or lost.target), text)

    def _readable(self, message: OutboundMessage) -> str:
        """Return the text of a message as a person reads it."""
        place = message.target.channel, message.target.account
        channel = self._channels.get(place) if message.rich else None
        return message.text if channel is None else channel.readable(message.text)


def _left_out(reply: str) -> str:
    """Return the text beside the token, which is not sent, for people who ask why (SPEC HB-6)."""
    left = without_token(reply).strip()
    return f"it said: {left}" if left else ""


def _with_files(text: str, files: Collection[str]) -> str:
    return "\n".join([text, *files])


def _incident(agent: AgentName) -> str:
    return f"heartbeat:{agent}"

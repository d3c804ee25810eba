"""Questions of runs to people about their tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import orjson

from goclaw_py.core.approvals import (
    NO_CONTEXT,
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Asker,
    Decision,
    ToolGrant,
    about_approval,
)
from goclaw_py.core.ids import AgentName, ApprovalId, OccurrenceId, RunId, SessionKey
from goclaw_py.core.outcomes import stop_reason
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.records import WAITING_APPROVALS, ApprovalQuery, Notice, RunEnd
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.messages.access_requests import show
from goclaw_py.store.postgres.messages.message_json import inbound
from goclaw_py.store.postgres.pages import place, prefix_range
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.postgres.runs import steps
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("approvals")
_RUNS = queries("runs")


async def ask(connection: Connection, ends: Sequence[RunEnd]) -> None:
    """Store the questions of runs that end; their messages or jobs wait for the answers."""
    asking = [end for end in ends if end.approvals]
    if asking:
        lines = [line for end in asking for line in _lines(end)]
        await connection.fetch(
            _SQL["request"], [end.id for end in asking], orjson.dumps(lines).decode()
        )
    runs = [end.id for end in ends]
    await connection.fetch(_SQL["park"], runs)
    parked = await connection.fetch(_SQL["park_occurrences"], runs)
    if any(row["reason"] is None for row in parked):
        await notify(connection, [Notice.CRON])


async def stop_questions(
    connection: Connection, occurrences: Sequence[OccurrenceId], now: datetime | None
) -> None:
    """Answer the questions of occurrences that have ended; without ``now`` as of the questions."""
    for row in await connection.fetch(_SQL["stop_of_occurrences"], list(occurrences), now):
        await _show(connection, row, now=row["decided_at"])


class PostgresApprovals(PostgresPart):
    """Implements ``ApprovalStore``."""

    async def approval(self, approval_id: ApprovalId) -> Approval | None:
        row = await self._pool.row(_SQL["approval"], approval_id)
        return None if row is None else _approval(row)

    async def find_approvals(self, prefix: str) -> list[Approval]:
        found = await self._pool.fetch(_SQL["find"], *prefix_range(prefix))
        return [_approval(row) for row in found]

    async def approvals(self, query: ApprovalQuery = WAITING_APPROVALS) -> list[Approval]:
        chat = rows.TargetColumns.of(query.asked_in)
        found = await self._pool.fetch(
            _SQL["approvals"],
            query.limit,
            query.session,
            query.waiting,
            *place(query.before),
            chat.channel,
            chat.account,
            chat.chat,
            chat.thread,
        )
        return [_approval(row) for row in found]

    async def decide_approval(
        self, approval_id: ApprovalId, decision: Decision, *, by: str, now: datetime
    ) -> Approval | None:
        return await self._decide(approval_id, decision, by=storable(by), now=now)

    async def expire_approvals(self, *, now: datetime) -> int:
        found = await self._pool.fetch(_SQL["expired"], now)
        done = [
            await self._decide(ApprovalId(row["id"]), Decision.EXPIRED, by="", now=now)
            for row in found
        ]
        return sum(one is not None for one in done)

    async def _decide(
        self, approval_id: ApprovalId, decision: Decision, *, by: str, now: datetime
    ) -> Approval | None:
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_session"], approval_id)
            await connection.fetch(_SQL["lock_occurrence"], approval_id)
            is_over = decision is Decision.EXPIRED
            row = await connection.row(_SQL["decide"], approval_id, decision, now, by, is_over)
            if row is None:
                return None
            step = DecisionStep(row["call_id"], decision)
            await connection.fetch(_SQL["add_step"], row["run_id"], steps.payload(step))
            if decision.grants:
                session = "" if decision is Decision.ALWAYS else row["session"]
                await connection.fetch(_SQL["grant"], row["agent"], session, row["tool"], now, by)
            if await connection.fetch(_SQL["release"], row["root_run"]):
                await notify(connection, [Notice.INBOX])
            elif await connection.fetch(_SQL["released_subagent"], row["root_run"]):
                await notify(connection, [Notice.SUBAGENTS])
            if await connection.fetch(_SQL["release_occurrence"], row["root_run"]):
                await notify(connection, [Notice.CRON])
            await _show(connection, row, now=now)
        return _approval(row)

    async def stop_approvals(
        self, session: SessionKey, *, everything: bool, sender: str | None, now: datetime
    ) -> int:
        async with self._pool.transaction() as connection:
            locked = await connection.row(_RUNS["lock_session"], session)
            if locked is None:
                return 0
            found = await connection.fetch(_SQL["waiting_turns"], session, sender)
            turns = [row["id"] for row in (found if everything else found[:1])]
            if not turns:
                return 0
            stopped = await connection.fetch(_SQL["stop"], turns, now)
            reason = stop_reason(everything=everything)
            ended = await connection.fetch(_SQL["end_waiting"], turns, now, reason)
            ended.sort(key=lambda row: (turns.index(row["run_id"]), row["id"]))
            messages = [
                rules.StoppedMessage(
                    row["run_id"], row["received_at"], inbound(row["message"]).text
                )
                for row in ended
            ]
            said = {
                RunId(row["run_id"]): _context(row["context"]).said
                for row in stopped
                if row["run_id"] == row["root_run"]
            }
            entries = rules.stopped_while_waiting(messages, said, now)
            await connection.fetch(
                _RUNS["remember"],
                session,
                locked["epoch"],
                *rows.stored_entry_columns(entries),
            )
            for row in stopped:
                await _show(connection, row, now=now)
            await close_abandoned(connection, now=now)
        return len(turns)

    async def is_granted(self, agent: AgentName, session: SessionKey, tool: str) -> bool:
        return await self._pool.row(_SQL["is_granted"], agent, session, tool) is not None

    async def grants(self) -> list[ToolGrant]:
        found = await self._pool.fetch(_SQL["grants"])
        return [
            ToolGrant(
                AgentName(row["agent"]),
                row["tool"],
                SessionKey(row["session"]) if row["session"] else None,
                row["granted_at"],
                row["granted_by"],
            )
            for row in found
        ]

    async def revoke_grant(self, agent: AgentName, tool: str, session: SessionKey | None) -> bool:
        gone = await self._pool.row(_SQL["revoke"], agent, tool, session or "")
        return gone is not None


async def _show(connection: Connection, answered: Row, *, now: datetime) -> None:
    """Show an answer in the messages that asked."""
    decision, by = Decision(answered["decision"]), answered["decided_by"]
    about = about_approval(ApprovalId(answered["id"]))
    edited = partial(rules.answered, decision=decision, by=by)
    await show(connection, about, edited, now=now)


def _lines(end: RunEnd) -> list[dict[str, object]]:
    """Return records for ``approvals.ask``."""
    lines: list[dict[str, object]] = []
    for one in end.approvals:
        place, request = rows.TargetColumns.of(one.target), storable(one.request)
        lines.append(
            {
                "id": one.id,
                "run_id": storable(end.id),
                "call_id": request.call_id,
                "tool": request.tool,
                "arguments": request.arguments,
                "uncertain": request.uncertain,
                "members": request.members,
                "channel": place.channel,
                "account": place.account,
                "chat": place.chat,
                "thread": place.thread,
                "asked_at": end.finished_at,
                "expires_at": one.expires_at,
                "context": storable(one.context),
            }
        )
    return lines


def _approval(row: Row) -> Approval:
    request = ApprovalRequest(
        row["call_id"],
        row["tool"],
        row["arguments"],
        row["uncertain"],
        (row["expires_at"] - row["asked_at"]).total_seconds(),
        row["members"],
    )
    return Approval(
        ApprovalId(row["id"]),
        RunId(row["run_id"]),
        SessionKey(row["session"]),
        AgentName(row["agent"]),
        request,
        rows.target(row),
        row["asked_at"],
        row["expires_at"],
        None if row["decision"] is None else Decision(row["decision"]),
        row["decided_at"],
        row["decided_by"],
        _context(row["context"]),
    )


def _context(text: str | None) -> ApprovalContext:
    if text is None:
        return NO_CONTEXT
    known = orjson.loads(text)
    people = tuple(Asker(one["name"], one["guest"]) for one in known["people"])
    counts = known["allowed"], known["denied"]
    # A node of an earlier release has asked without them.
    later = known.get("account", ""), known.get("said", "")
    return ApprovalContext(people, known["chat"], known["request"], known["job"], *counts, *later)

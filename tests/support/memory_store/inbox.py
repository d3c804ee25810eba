"""The inbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import SUBAGENT, OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.records import (
    AcceptedMessages,
    DroppedMessage,
    InboxKind,
    InboxRow,
    LastActivity,
    NewInbox,
    NewPairing,
    Notice,
    Place,
    Stops,
    Unanswered,
)
from goclaw_py.store import rules
from goclaw_py.store.text import storable
from tests.support.memory_store import sql_rules
from tests.support.memory_store.tables import ExternalKey, InboxRecord, MemoryPart, SessionRecord


class MemoryInbox(MemoryPart):
    """Implements ``InboxStore``."""

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> AcceptedMessages:
        offered = sql_rules.first_of_each(batch)
        rows = storable(tuple(offered))
        fresh = [row for row in rows if _key(row) not in self._db.known]
        for row in fresh:
            self._enter_session(row, now)
        work = {
            row.session for row in fresh if row.outcome is None or self._is_of_another(row, node)
        }
        for key in work:
            session = self._db.sessions[key]
            if not session.pending:
                self._db.claim(session, node, now)
        owned = {key for key in work if self._db.sessions[key].owner == node}
        before = {row for key in owned for row in self._db.sessions[key].pending}
        fresh = [
            replace(row, outcome=None, reason=None) if self._is_of_another(row, node) else row
            for row in fresh
        ]
        waited = {row.session: [*self._db.sessions[row.session].pending.values()] for row in fresh}
        stored = [(self._insert(row, now), row) for row in fresh]
        for row in rows:
            self._stop(row, waited.get(row.session, ()), node, now)
        await self._request_pairings(pairings, now)
        if work - owned:
            self._db.notify(Notice.INBOX)
        listed = [
            record.row(self._db.sessions[row.session].mode)
            for record, row in stored
            if (row.session in owned if row.outcome is None else row.kind is InboxKind.COMMAND)
        ]
        fresh_keys = {_key(row) for row in fresh}
        # Under the ids that the caller knows, which may differ from what can be stored.
        known = [
            row.message.external_id
            for row, clean in zip(offered, rows, strict=True)
            if _key(clean) not in fresh_keys
        ]
        return AcceptedMessages(tuple(listed), frozenset(known), frozenset(before))

    async def claim_pending(
        self,
        node: NodeId,
        *,
        now: datetime,
        places: Collection[Place],
        known: Collection[int] = (),
    ) -> list[InboxRow]:
        for key in {row.session for row in self._db.pending.values()}:
            session = self._db.sessions[key]
            if _place(session) in places and not self._has_run_of_others(session, node):
                self._db.claim(session, node, now)
        mine = [
            row
            for row in self._db.pending.values()
            if self._db.sessions[row.session].owner == node and row.id not in known
        ]
        mine.sort(key=lambda row: (self._crashes(row) >= sql_rules.CRASHES_UNTIL_LAST, row.id))
        return [row.row(self._db.sessions[row.session].mode) for row in mine]

    def _crashes(self, row: InboxRecord) -> int:
        """Return the attempts of a row, or of the one whose run has taken it in."""
        head = None if row.joined is None else self._db.pending.get(row.joined)
        return (head or row).attempts

    async def ended(self, rows: Collection[int]) -> set[int]:
        return {row for row in rows if row in self._db.inbox and row not in self._db.pending}

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
        node: NodeId | None = None,
    ) -> None:
        open_rows = [self._db.pending[row] for row in set(rows) if row in self._db.pending]
        ended = [row for row in open_rows if node is None or not self._is_of_another(row, node)]
        for row in ended:
            self._db.end_row(row, outcome, reason, now)
        if ended or not rows:
            sessions = {row.session for row in ended}
            session = sessions.pop() if len(sessions) == 1 else None
            self._db.enqueue(storable(tuple(say)), session=session, now=now)
        if ended:
            self._db.close_abandoned_drafts(now)

    async def unanswered(
        self, session: SessionKey, *, ended: bool, limit: int = 50
    ) -> list[Unanswered]:
        record = self._db.sessions.get(storable(session))
        if record is None:
            return []
        if ended:
            undone = {one.entry.run_id for one in record.history if one.undone_at is not None}
            kept = [row for row in record.unanswered if row.run_id not in undone - {None}]
            found = sorted(kept, key=lambda row: row.id, reverse=True)
        else:
            rows = self._db.inbox.values()
            parked = [row for row in rows if row.is_parked and row.session == record.key]
            waiting = sorted((*record.pending.values(), *parked), key=lambda row: row.id)
            found = [row for row in waiting if row.kind is InboxKind.MESSAGE]
        return [row.unanswered() for row in found[:limit]]

    async def chained_turns(self, run: RunId, *, limit: int) -> int:
        own = self._db.runs[run].new
        heard = self._db.sessions[own.session].heard
        lately = [
            one.new
            for one in self._db.runs.values()
            if one.new.session == own.session
            and one.new.trigger is Trigger.CHAT
            and one.new.inbox
            and (one.end is None or one.end.outcome is not Outcome.INTERRUPTED)
            and (one.end is None or one.end.reason is not Reason.MERGED)
            and (one.new.started_at, one.new.inbox) <= (own.started_at, own.inbox)
            and (heard is None or one.new.started_at >= heard.at)
        ]
        turns: set[tuple[int, ...]] = set()
        for one in sorted(lately, key=lambda new: (new.started_at, new.inbox), reverse=True)[
            :limit
        ]:
            rows = [self._db.inbox.get(row) for row in one.inbox]
            if any(row is None or row.message.source != SUBAGENT for row in rows):
                break
            turns.add(one.inbox)
        return len(turns)

    async def release_sessions(
        self, node: NodeId, sessions: Collection[SessionKey], *, waiting: bool = False
    ) -> None:
        handed_over = is_wanted = False
        waited_for = set(self._db.cron.waiting.values())
        for key in storable(tuple(sessions)):
            session = self._db.sessions.get(key)
            if session is None or session.owner != node or (session.pending and not waiting):
                continue
            if not any(self._node_of(run) == node for run in session.active):
                session.owner = None
                handed_over |= bool(session.pending)
                is_wanted |= key in waited_for
        if handed_over:
            self._db.notify(Notice.INBOX)
        if is_wanted:
            self._db.notify(Notice.CRON)

    def _node_of(self, run: RunId) -> NodeId:
        return self._db.runs[run].node

    def _is_of_another(self, row: NewInbox | InboxRecord, node: NodeId) -> bool:
        return self._db.sessions[row.session].owner not in (None, node)

    def _has_run_of_others(self, session: SessionRecord, node: NodeId) -> bool:
        return any(self._node_of(run) != node for run in session.active)

    def _enter_session(self, row: NewInbox, now: datetime) -> None:
        message = row.message
        target = message.target
        session = self._db.sessions.setdefault(
            row.session, SessionRecord(row.session, row.agent, target, now, now)
        )
        session.target = target
        if not message.source:
            heard_at = now if session.heard is None else max(session.heard.at, now)
            session.heard = LastActivity(
                target, message.peer, session.agent, message.sender.id, heard_at
            )
        session.last_active_at = max(session.last_active_at, now)

    def _insert(self, row: NewInbox, now: datetime) -> InboxRecord:
        self._db.last_inbox_id += 1
        record = InboxRecord(
            id=self._db.last_inbox_id,
            message=row.message,
            session=row.session,
            agent=row.agent,
            kind=row.kind,
            received_at=now,
        )
        self._db.inbox[record.id] = self._db.known[_key(row)] = record
        if row.outcome is None:
            self._db.pending[record.id] = record
            self._db.sessions[row.session].pending[record.id] = record
        else:
            self._db.end_row(record, row.outcome, row.reason, now)
        return record

    def _stop(
        self, row: NewInbox, waited: Iterable[InboxRecord], node: NodeId, now: datetime
    ) -> None:
        """Cancel the messages that a row stops, except those of other nodes."""
        stops = row.stops
        if stops is None:
            return
        target = row.message.target
        names = ((target.channel, target.account, name) for name in stops.messages)
        named = [one for one in map(self._db.known.get, names) if one is not None]
        self._cancel(named, stops.reason, node, now, keeps_runs=False)
        if stops.everything:
            sent_at = row.message.sent_at
            earlier = [one for one in waited if one.message.sent_at <= sent_at]
            self._stop_everything(stops, earlier, node, now)

    async def stop_session(
        self,
        session: SessionKey,
        stops: Stops,
        *,
        node: NodeId,
        now: datetime,
        before: InboxRow | None = None,
    ) -> None:
        known = self._db.sessions.get(storable(session))
        waiting = [] if known is None else list(known.pending.values())
        if before is not None:
            waiting = [one for one in waiting if before.is_behind(one.row())]
        self._stop_everything(stops, waiting, node, now)

    def _stop_everything(
        self, stops: Stops, rows: Collection[InboxRecord], node: NodeId, now: datetime
    ) -> None:
        dropped = {one.row: one for one in stops.dropped}
        for row in rows:
            row.dropped = row.dropped or dropped.get(row.id)
        mine = [row for row in rows if stops.by in (None, row.message.of_whom)]
        self._cancel(mine, stops.reason, node, now, keeps_runs=True)

    def _cancel(
        self,
        rows: Iterable[InboxRecord],
        reason: Reason,
        node: NodeId,
        now: datetime,
        *,
        keeps_runs: bool,
    ) -> None:
        """Cancel pending messages, except those of other nodes.

        With ``keeps_runs``, those that a run of the node has are only marked.
        """
        ended = False
        for row in rows:
            is_message = row.id in self._db.pending and row.kind is InboxKind.MESSAGE
            is_dropped = keeps_runs and row.dropped is not None
            if not is_message or is_dropped or self._is_of_another(row, node):
                continue
            if keeps_runs and self._is_in_run_of(node, row):
                row.dropped = DroppedMessage(row.id, Outcome.CANCELLED, reason)
            else:
                self._db.end_row(row, Outcome.CANCELLED, reason, now)
                ended = True
        if ended:
            self._db.close_abandoned_drafts(now)

    def _is_in_run_of(self, node: NodeId, row: InboxRecord) -> bool:
        """Return whether an unfinished run of a node has a row, also taken in."""
        head = row if row.joined is None else self._db.inbox[row.joined]
        run = self._db.runs.get(row.run_id or head.run_id or RunId(""))
        return run is not None and run.end is None and run.node == node

    async def _request_pairings(self, pairings: Sequence[NewPairing], now: datetime) -> None:
        new: list[NewPairing] = []
        for pairing in rules.first_request_of_each(storable(tuple(pairings))):
            request = pairing.request
            key = request.channel, request.account, request.sender.id
            if key in self._db.people:
                # A node that has not heard of it yet has made a request of what they say.
                await self.accept(pairing.rows, node=NodeId(""), now=now)
                continue
            chat = self._db.chats.get((request.channel, request.account, request.chat))
            if chat and (chat.allowed is False or (chat.allowed and request.is_group)):
                continue
            known = self._db.requests.get(key)
            if known is None or known.expires_at <= now:
                self._db.requests[key] = request
                self._db.kept[key] = []
                new.append(pairing)
            kept = [*self._db.kept[key], *pairing.rows]
            self._db.kept[key] = list(rules.newest_retained(kept))
        said = [message for pairing in new for message in pairing.say]
        self._db.enqueue(said, session=None, now=now)
        if new:
            self._db.notify(Notice.PEOPLE)


def _key(row: NewInbox) -> ExternalKey:
    target = row.message.target
    return target.channel, target.account, row.message.external_id


def _place(session: SessionRecord) -> Place | None:
    return None if session.target is None else (session.target.channel, session.target.account)

"""Deletion of old rows."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.records.upkeep import RetentionReport
from goclaw_py.store import upkeep_rules
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.sql import queries

_SQL = queries("upkeep")
_AUDIT = queries("audit")
_BACKGROUND = queries("background")
_NAMES = queries("names")
_SETTINGS = queries("settings")
_WEB_LINKS = queries("web_links")
_SIGN_INS = queries("sign_ins")


class PostgresUpkeep(PostgresPart):
    """Implements ``UpkeepStore``."""

    async def sweep_inbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        return await self._sweep_stretch(_SQL["sweep_inbox"], now, after)

    async def sweep_outbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        return await self._sweep_stretch(_SQL["sweep_outbox"], now, after)

    async def end_unread(self, *, now: datetime) -> int:
        ended = await self._pool.fetch(
            _SQL["end_unread"],
            now,
            upkeep_rules.READ_LATER,
            now - upkeep_rules.UNREAD_KEPT,
            upkeep_rules.MOST_UNREAD,
            upkeep_rules.MOST_SWEPT,
        )
        return len(ended)

    async def sweep_runs(self, *, now: datetime) -> int:
        return await self._sweep(_SQL["sweep_runs"], now - upkeep_rules.RUNS_KEPT)

    async def sweep_message_counts(self, *, now: datetime) -> int:
        return await self._sweep(_SQL["sweep_message_counts"], now - upkeep_rules.RUNS_KEPT)

    async def sweep_sessions(self, *, now: datetime) -> int:
        """Lock only sessions that were idle for a month, for four short statements."""
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(
                _SQL["lock_idle_sessions"],
                now - upkeep_rules.SESSIONS_KEPT,
                upkeep_rules.MOST_SESSIONS,
                upkeep_rules.ONE_RUN,
                upkeep_rules.OF_JOB,
            )
            if not locked:
                return 0
            keys = [row["key"] for row in locked]
            entries = await connection.fetch(_SQL["forget_history"], keys, upkeep_rules.MOST_SWEPT)
            steps = await connection.fetch(_SQL["forget_steps"], keys, upkeep_rules.MOST_SWEPT)
            sessions = await connection.fetch(_SQL["forget_sessions"], keys)
        return len(entries) + len(steps) + len(sessions)

    async def sweep_requests(self, *, now: datetime) -> int:
        return await self._sweep(_SQL["sweep_requests"], now - upkeep_rules.REQUESTS_KEPT)

    async def sweep_incidents(self, *, now: datetime) -> int:
        before = now - upkeep_rules.WARNINGS_KEPT
        names = [f"{begin}%" for begin in upkeep_rules.WARNINGS]
        rows = await self._pool.fetch(
            _SQL["sweep_incidents"], before, names, upkeep_rules.MOST_SWEPT
        )
        return len(rows)

    async def sweep_unmentioned(self, *, now: datetime) -> int:
        return await self._sweep(_BACKGROUND["sweep"], now - upkeep_rules.UNMENTIONED_KEPT)

    async def sweep_names(self, *, now: datetime) -> int:
        return await self._sweep(_NAMES["sweep"], now - upkeep_rules.NAMES_KEPT)

    async def sweep_setting_edits(self, *, now: datetime) -> int:
        return await self._sweep(_SETTINGS["sweep"], now - upkeep_rules.SETTING_EDITS_KEPT)

    async def sweep_web_links(self, *, now: datetime) -> int:
        return await self._sweep(_WEB_LINKS["sweep"], now - upkeep_rules.WEB_LINKS_KEPT)

    async def sweep_audit(self, *, before: datetime) -> int:
        return await self._sweep(_AUDIT["sweep"], before)

    async def sweep_sign_ins(self, *, now: datetime) -> int:
        return await self._sweep(_SIGN_INS["sweep"], now)

    async def _sweep(self, query: str, before: datetime) -> int:
        """Delete some rows from before an instant; return how many."""
        return len(await self._pool.fetch(query, before, upkeep_rules.MOST_SWEPT))

    async def _sweep_stretch(self, query: str, now: datetime, after: int) -> RetentionReport:
        row = await self._pool.row(
            query,
            after,
            upkeep_rules.MOST_SWEPT,
            now - upkeep_rules.FINISHED_KEPT,
            now - upkeep_rules.UNSEEN_KEPT,
        )
        assert row is not None
        last = None if row["last"] is None else (row["last"], row["since"])
        return upkeep_rules.swept(row["gone"], row["looked_at"], last, now)

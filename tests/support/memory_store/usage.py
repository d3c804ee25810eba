"""Sums of the usage of runs, and numbers of messages, for operators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime

from goclaw_py.core.ids import AgentName, JobId
from goclaw_py.core.outcomes import FAILURES, Trigger
from goclaw_py.core.session_keys import agent_of
from goclaw_py.records import NewRun, OutboxState, RunEnd
from goclaw_py.runs.usage_report import (
    MAX_GROUPS,
    NOTHING_USED,
    DaySpan,
    DayTimes,
    Grouping,
    MessageCounts,
    UsageRow,
    UsageTable,
    Used,
    costliest,
    percentiles,
    total_of,
    used_by,
)
from tests.support.memory_store.tables import InboxRecord, MemoryPart, OutboxRecord, RunRow

_Group = tuple[str | None, ...]


class MemoryUsageSums(MemoryPart):
    """Implements ``RunStore.usage``."""

    async def usage(
        self, by: Collection[Grouping], span: DaySpan, *, limit: int = MAX_GROUPS
    ) -> UsageTable:
        groups: dict[_Group, Used] = {}
        for run in self._db.runs.values():
            day = span.day_of(run.new.started_at)
            if day is not None and run.end is not None:
                group = tuple(_value(run, run.end, day, one) for one in by)
                used = groups.get(group, NOTHING_USED)
                groups[group] = used.plus(used_by(run.end.usage))
        rows = costliest(
            (
                UsageRow(dict(zip(by, group, strict=True)), used, self._names(by, group))
                for group, used in groups.items()
            ),
            limit,
        )
        return UsageTable(tuple(rows), total_of(groups.values()), len(groups) - len(rows))

    async def run_times(self, span: DaySpan) -> list[DayTimes]:
        days: dict[date, list[tuple[NewRun, RunEnd]]] = {day: [] for day in span.days}
        for run in self._db.runs.values():
            day = span.day_of(run.new.started_at)
            if day is not None and run.end is not None:
                days[day].append((run.new, run.end))
        return [_times(day, runs) for day, runs in days.items()]

    async def message_counts(self, span: DaySpan) -> MessageCounts:
        counts: dict[tuple[date, AgentName | None], tuple[int, int]] = {}
        rows = counted_messages((*self._db.inbox.values(), *self._db.outbox.values()))
        for at, agent, is_sent in (*self._db.deleted_messages, *rows):
            if (day := span.day_of(at)) is not None:
                received, sent = counts.get((day, agent), (0, 0))
                counts[day, agent] = received + (not is_sent), sent + is_sent
        return counts

    def _names(self, by: Collection[Grouping], group: _Group) -> dict[Grouping, str]:
        names: dict[Grouping, str] = {}
        for one, value in zip(by, group, strict=True):
            if value is not None and one is Grouping.JOB:
                names[one] = self._title(JobId(value))
            elif value is not None and one is Grouping.SENDER:
                names[one] = self._name(value)
        return {one: name for one, name in names.items() if name}

    def _title(self, job: JobId) -> str:
        known = self._db.cron.jobs.get(job)
        if known is not None:
            return known.spec.title
        log = self._db.cron.log(job)
        return log[0].slug if log else ""

    def _name(self, sender: str) -> str:
        people = sorted(self._db.people.items(), key=lambda item: item[0])
        return next((person.sender.name for key, person in people if "/".join(key) == sender), "")


def counted_messages(
    rows: Iterable[InboxRecord | OutboxRecord],
) -> Iterator[tuple[datetime, AgentName | None, bool]]:
    """Yield when a message was received or sent, its agent, and whether it was sent."""
    for row in rows:
        if isinstance(row, InboxRecord):
            if row.message.source != "subagent":
                yield row.received_at, row.agent, False
        elif row.state is OutboxState.SENT and row.finished_at is not None:
            yield row.finished_at, None if row.session is None else agent_of(row.session), True


def _times(day: date, runs: list[tuple[NewRun, RunEnd]]) -> DayTimes:
    chats = [(new.submitted_at, end) for new, end in runs if new.trigger is Trigger.CHAT]
    waits = [_seconds(new.submitted_at, new.started_at) for new, _ in runs if new.submitted_at]
    firsts = [_seconds(asked, end.first_text_at) for asked, end in chats
              if asked and end.first_text_at]  # fmt: skip
    failed = sum(end.outcome in FAILURES for _, end in runs)
    used = total_of(used_by(end.usage) for _, end in runs)
    return DayTimes(day, len(runs), failed, percentiles(waits), percentiles(firsts), used)


def _seconds(since: datetime, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds())


def _value(run: RunRow, end: RunEnd, day: date, grouping: Grouping) -> str | None:
    return {
        Grouping.AGENT: run.new.agent,
        Grouping.JOB: run.asked.job,
        Grouping.SENDER: run.asked.sender,
        Grouping.DAY: day.isoformat(),
        Grouping.MODEL: end.model or run.new.model,
        Grouping.TRIGGER: run.new.trigger.value,
        Grouping.LANE: run.new.lane,
    }[grouping]

"""Retention: deletes what has been kept long enough (SPEC DB-5).

The rules of SPEC DB-5:

`goclaw backup|restore`. `restore --check` lists the folders, files, programs and MCP servers that
the settings of the backup use. If there is no settings file, a restore uses those of the backup;
paths in them that are outside of the home, or hidden in it, need a yes (a question, or `--yes`),
before anything is written. A member whose headers are above 1 MiB, a sparse file, links, devices
and names that lead elsewhere are refused before anything is changed. Kept: finished inbox/outbox 7
d (what tells of a job or heartbeat run as long as its log row; dead messages and messages without
an answer that nobody has dismissed 30 d), runs, with their steps, and heartbeat runs 90 d (a run
as long as a log row or draft names it), numbers of messages 90 d, sessions, with the steps of
their runs, of fresh, heartbeat, subagent and delegate runs and of deleted jobs 30 d after the last
run in them, edits of settings that are not in effect 90 d, expired requests for access, with what
their senders wrote, and group messages without a mention 1 d, expired links and sign-ins of the
web chat (CHAN-13) 30 d, sign-ins to the dashboard (SEC-6) until they expire, tokens (SEC-8) until
they are revoked, the audit log (SEC-9) `audit.retention` (365 d), names (OPS-9) 90 d after they
were seen last, titles (CHAN-9) until their conversation is deleted, chats for ever. Unfinished
rows are never deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """The result of one retention pass over a range of rows.

    ``rows`` is the number of deleted rows. The next pass starts after row ``after``; None if all
    later rows are too young.
    """

    rows: int
    after: int | None


class UpkeepStore(Protocol):
    """Deletes old rows, a limited number per call.

    Unfinished rows, and rows that a kept row refers to, are not deleted. Several processes may
    call at once: rows that another one has locked are skipped. ``GatewayJobStore.sweep_jobs`` and
    ``HeartbeatStore.sweep_heartbeat_runs`` delete old occurrences and heartbeat runs.
    """

    async def sweep_inbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        """Delete ended inbox rows after row ``after``.

        Rows are kept for 7 days after their end, dead letters that are not dismissed for 30, and
        rows with a draft or an unfinished run as long as these. A deleted message would be accepted
        as new if it came again.
        """

    async def sweep_outbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        """Delete sent, dropped and dead outbox rows after row ``after``.

        Rows are kept for 7 days after their end, dead ones for 30, and messages about an occurrence
        or a heartbeat run as long as its row.
        """

    async def end_unread(self, *, now: datetime) -> int:
        """End pending answers of the console and the web chat as sent; return how many.

        Those that no terminal has opened for a day, and of each chat all but the newest 20: the
        history of the session has them. What jobs and heartbeats wrote is not in it and waits.
        """

    async def sweep_runs(self, *, now: datetime) -> int:
        """Delete runs that ended 90 days ago, with their tool calls; return how many.

        Runs of a stored occurrence or heartbeat run, and runs with a draft, are kept.
        """

    async def sweep_sessions(self, *, now: datetime) -> int:
        """Delete sessions without activity for 30 days.

        Only sessions of one subagent, delegate or isolated job run, and sessions of deleted jobs.
        Returns the number of deleted history entries and sessions; a session is deleted after its
        last entry.
        """

    async def sweep_message_counts(self, *, now: datetime) -> int:
        """Delete the numbers of messages from 90 days ago; return how many."""

    async def sweep_requests(self, *, now: datetime) -> int:
        """Delete pairing requests that expired a day ago; return how many."""

    async def sweep_incidents(self, *, now: datetime) -> int:
        """Delete incidents that belong to a day of a week ago; return how many."""

    async def sweep_unmentioned(self, *, now: datetime) -> int:
        """Delete group messages without a mention that are a day old; return how many."""

    async def sweep_setting_edits(self, *, now: datetime) -> int:
        """Delete edits of settings from 90 days ago, except those in effect; return how many."""

    async def sweep_names(self, *, now: datetime) -> int:
        """Delete names that were not seen for 90 days; return how many."""

    async def sweep_web_links(self, *, now: datetime) -> int:
        """Delete links to the web chat, and sign-ins by them, that expired 30 days ago.

        Returns how many.
        """

    async def sweep_audit(self, *, before: datetime) -> int:
        """Delete entries of the audit log from before an instant; return how many."""

    async def sweep_sign_ins(self, *, now: datetime) -> int:
        """Delete sign-ins to the dashboard that have expired; return how many."""

"""Ends chains of turns and scheduled runs that go on without a person (SPEC AGENT-14).

The result of a background subagent begins a turn, and that turn may start further subagents; a run
of a job may schedule others. Each has a budget of its own, so that only this limit ends the chain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from goclaw_py.chat.outbound.texts import snippet
from goclaw_py.core.errors import BadJob, ChainLimitReached
from goclaw_py.core.messages import SUBAGENT, Target
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.targets import target_text
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.jobs import Requester
from goclaw_py.records import InboxStore
from goclaw_py.runs.turn import Turn

Alert = Callable[[str, str, Target | None], Awaitable[None]]
"""Alerts the owners about something, unless this was done: its key, the text, the chat that knows
it already. Raises ``StoreUnavailable``.
"""


class ChainLimit:
    """Limits the turns and runs in a row that no person or program has begun.

    Args:
        most: The maximum number of such turns and runs; 0: no limit.
    """

    def __init__(self, store: InboxStore, clock: Clock, most: int) -> None:
        self._store = store
        self._clock = clock
        self._most = most

    def connect(self, alert: Alert) -> None:
        """Set the dependencies. Call it once, before anything runs."""
        self._alert = alert

    async def check(self, turn: Turn) -> int:
        """Return how many turns in a row, up to this one, only results of subagents have begun.

        Raises ``ChainLimitReached`` for a turn that has begun and is one too many. The error has a
        text for people only at the first of these turns; the results of all of them are in the
        history, and the next message of a person begins to count again. Turns that a person has
        begun cost nothing. Waits for the database.
        """
        if not self._most or any(row.message.source != SUBAGENT for row in turn.rows):
            return 0
        most = self._most
        count = await retry_until_available(
            lambda: self._store.chained_turns(turn.id, limit=most + 2)
        )
        if count <= most:
            return count
        cause = f"more than {most} turns in a row that only results of subagents have begun"
        if count > most + 1:
            raise ChainLimitReached("", cause)
        # One for each conversation and day: a chain may begin again with each message.
        key = f"chain:{turn.session}:{self._clock.now():%Y-%m-%d}"
        warning = _warning(turn, most)
        await retry_until_available(lambda: self._alert(key, warning, turn.target))
        raise ChainLimitReached(_ended(most), cause)

    async def check_scheduling(self, by: Requester) -> None:
        """Raise ``BadJob`` if a run may not schedule another one, which would be one too many.

        Raises ``StoreUnavailable``.
        """
        most = self._most
        if not most or by.chained < most:
            return
        key = f"chain:{by.owner}:{self._clock.now():%Y-%m-%d}"
        await self._alert(key, _jobs_warning(by, most), None)
        raise BadJob(
            "schedule",
            f"{most} turns in a row began without a person, so this run can schedule nothing more; "
            "ask the user to do it, or say in your answer what is left",
        )


def _ended(most: int) -> str:
    """Return the text for the chat."""
    return (
        f"I stopped here: I have answered {most} results of subagents in a row, without a message "
        "from you. I keep further results in mind: write anything, and I go on."
    )


def _warning(turn: Turn, most: int) -> str:
    """Return the text for the owners."""
    place = turn.rows[-1].message.place_name or target_text(turn.target)
    return (
        f"Agent {turn.agent} went on by itself in {snippet(place)}: {most} turns in a row began "
        "with results of subagents, none with a message of a person. I stopped it there. See: "
        "goclaw usage --by agent,job"
    )


def _jobs_warning(by: Requester, most: int) -> str:
    """Return the text for the owners about runs of jobs that schedule each other."""
    return (
        f"Agent {by.agent} went on by itself in jobs of {by.owner}: {most} turns in a row began "
        "without a person, each scheduled by the one before. I refused to schedule another one. "
        "See: goclaw cron list, goclaw usage --by agent,job"
    )

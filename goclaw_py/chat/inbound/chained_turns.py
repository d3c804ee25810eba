"""Ends chains of turns and scheduled runs that go on without a person (SPEC AGENT-14).

The result of a background subagent begins a turn, and that turn may start further subagents; a run
of a job may schedule others. Each has a budget of its own, so that only this limit ends the chain.

The rules of SPEC AGENT-14:

Nothing goes on by itself without end. Conversations: at most 10 turns in a row (`[runs]
max_chained_turns`, 0: no limit) answer only results of background subagents; turns of several
results at once count once, attempts at the same messages too, and whatever a person writes or a
program sends in between begins to count again. They are counted in the database, so a restart or
another node changes nothing; turns of people cost no statement for it. A further turn requests no
model and ends `failed` with reason `chain_limit` (`why`: `ended.chain_limit`); its result is in
the history for the next turn. The first one says so in the chat, and warns the owners in their
other direct chats, once for each conversation and day (UTC); later ones are silent. Jobs: a run
counts one more than the turn or run that scheduled its job last, by creating it, by an edit after
which it runs at other times, or by resuming it; a turn counts the turns in a row of its
conversation, 0 if a person or program began it. So a mixed chain is counted through, and each run
of a recurring job that a person scheduled counts 1. A run by hand counts 0, and any edit by a
person or program lets the job count as theirs. A run or turn that counts 10 or more schedules
nothing: its tool call fails with a sentence, nothing is stored, and the owners are told in all
their direct chats, once for each owner of jobs and day (UTC). It may still pause, rename and
delete jobs and change their goals. The number is stored with the definition of the job (none: 0).
Heartbeat runs and subagents cannot schedule; results of subagents of jobs begin no turns. When a
run is refused because the budget of its agent for the day is used up, the owners are told in their
direct chats, once for each agent and day. All these warnings are incidents that are kept for a
week.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from goclaw_py.chat.outbound.places import place_name
from goclaw_py.chat.outbound.texts import snippet
from goclaw_py.core.errors import BadJob, ChainLimitReached
from goclaw_py.core.messages import SUBAGENT, Target
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records.bound import BoundStore
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

    def __init__(self, store: BoundStore, clock: Clock, most: int, alert: Alert) -> None:
        self._store = store
        self._clock = clock
        self._most = most
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
        count = await self._store.retried.chained_turns(turn.id, limit=most + 2)
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
        chat = None if by.chat is None else by.chat.whole_chat
        place = "no chat" if chat is None else snippet(await place_name(self._store, chat))
        await self._alert(key, _jobs_warning(by, place, most), None)
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
    place = turn.rows[-1].message.place_name or f"a chat on {turn.target.channel.capitalize()}"
    return (
        f"⚠️ Agent {turn.agent} went on by itself in {snippet(place)}: {most} turns in a row began "
        "with results of subagents, none with a message of a person. I stopped it there. The "
        "operator can see what it cost on the page Usage of the dashboard."
    )


def _jobs_warning(by: Requester, place: str, most: int) -> str:
    """Return the text for the owners about runs of jobs that schedule each other."""
    return (
        f"⚠️ Agent {by.agent} went on by itself in jobs of {place}: {most} turns in a row began "
        "without a person, each scheduled by the one before. I refused to schedule another one. "
        "/jobs lists them there, and the operator can see what they cost on the page Usage of the "
        "dashboard."
    )

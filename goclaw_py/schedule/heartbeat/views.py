"""The status of a heartbeat for people, and who reads it (SPEC HB-9, OPS-4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from goclaw_py.core.messages import Target
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Route, target_text
from goclaw_py.core.text import truncate
from goclaw_py.core.time.texts import for_reader, friendly
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun, HeartbeatRunStatus, Skip

OTHER_CHAT: Final = "another chat"
_PLACE_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """The status of an agent's heartbeat.

    Args:
        last: The last heartbeat run that ended, None if there is none.
        current: The unfinished run.
        today: The usage of its runs on this UTC day.
        month: The usage of its runs in this month.
        events: The number of waiting events.
        wake_from: The earliest time of a waiting wake, None without one.
    """

    heartbeat: Heartbeat
    policy: HeartbeatPolicy
    route: Route
    now: datetime
    last: HeartbeatRun | None = None
    current: HeartbeatRun | None = None
    today: Usage | None = None
    month: Usage | None = None
    events: int = 0
    wake_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """What would happen if the heartbeat were run now: all checks, without a model.

    Args:
        status: ``RUNNING`` if its agent would be asked, ``DEFERRED`` or ``SKIPPED``.
        prompt: The prompt of the agent.
    """

    status: HeartbeatRunStatus
    skip: Skip | None
    detail: str
    prompt: str
    route: Route


@dataclass(frozen=True, slots=True)
class Reader:
    """What one kind of reader can do; each field is a sentence, or a part of one.

    Args:
        off_by_settings: Why commands cannot turn it on.
        over_budget: What to do about a used budget, "" where its end is said anyway.
        redirect: What to do about alerts that nobody gets.
        in_chat: Whether it is read in a chat, where chats have names and one line names the zone.
        places: The names of chats, for readers in a chat or a terminal.
        zone: The zone of a terminal, where all times are in it; "": times name their zone.
    """

    turn_on: str = "Turn it on with /heartbeat on (or goclaw heartbeat on)."
    add_item: str = "Add an item with /heartbeat add TEXT (or goclaw heartbeat add TEXT)."
    unmute: str = "Unmute it with /mute off (or goclaw heartbeat mute off)."
    off_by_settings: str = (
        "The heartbeat is turned off in the settings (heartbeat.enabled or heartbeat.interval); "
        "it can only be turned on there."
    )
    unreadable: str = "Fix the file; it is in the workspace of the agent."
    over_budget: str = "It starts again at 00:00 UTC; raise the budget with heartbeat.budget.day."
    redirect: str = (
        "Write to the agent in the chat that should get its alerts, or set heartbeat.target."
    )
    unplanned: str = "A gateway plans the first one when it starts: goclaw run."
    overdue: str = "but no gateway has started it. Is a gateway running? To start one: goclaw run."
    only_logged: str = "only to the log (heartbeat.target is none)"
    in_chat: bool = False
    places: Mapping[Target, str] = field(default_factory=dict)
    zone: str = ""

    def place(self, target: Target) -> str:
        """Return a chat as the reader knows it."""
        known = self.places.get(target, OTHER_CHAT if self.in_chat else target_text(target))
        return truncate(known, _PLACE_CHARS)

    def time(self, instant: datetime, zone: str, now: datetime) -> str:
        """Return a time in the zone of the reader."""
        if self.in_chat:
            return friendly(instant, self.zone or zone, now)
        return for_reader(instant, self.zone, zone, now)


OPERATOR: Final = Reader()
"""Who has a command line, the API or the dashboard."""

OWNER: Final = Reader(
    turn_on="Turn it on with /heartbeat on.",
    add_item="Add an item with /heartbeat add TEXT.",
    unmute="Unmute it with /mute off.",
    off_by_settings=(
        "The heartbeat is turned off in the settings. Only the operator can turn it on there."
    ),
    unreadable="The operator can repair the file.",
    over_budget="",
    redirect="Write to me in the chat that should get my alerts.",
    unplanned="It starts soon.",
    overdue="but it has not started. The operator can find the cause on the page Health.",
    only_logged="only to the log, as the settings say",
    in_chat=True,
)
"""An owner in a chat."""

GUEST: Final = replace(
    OWNER,
    turn_on="An owner can turn it on.",
    add_item="An owner can add items.",
    unmute="An owner can unmute it.",
    off_by_settings="The heartbeat is turned off.",
    unreadable="",
    overdue="but it has not started.",
    only_logged="to nobody",
    redirect="An owner can write to me in the chat that should get my alerts.",
)
"""Anybody else in a chat."""

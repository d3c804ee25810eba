"""Rules of this store that PostgreSQL has in its statements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from goclaw_py.core.ids import JobId, SessionKey
from goclaw_py.core.messages import InboundMessage, Target, person_at
from goclaw_py.core.outcomes import FAILURES, Outcome, Trigger
from goclaw_py.records import MessageFilter, NewInbox
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.store.text import folded, storable
from goclaw_py.store.upkeep_rules import OF_JOB, ONE_RUN

CRASHES_UNTIL_LAST: Final = 2
"""After this many crashes, the other rows of a session run before a row (SPEC IO-2)."""


API_SENDER: Final = "api"
"""The sender of requests over the API, which has no users."""


LETTERS: Final = FAILURES | {Outcome.DROPPED, Outcome.REJECTED}
"""Outcomes that operators are told about: failures that no person asked for."""


TALKS: Final = (Trigger.CHAT, Trigger.API)
"""Runs with these triggers make an agent busy (SPEC HB-4)."""


OVER: Final = (JobState.COMPLETED, JobState.FAILED)
"""Final states; these jobs are deleted after ``KEPT``."""


def selects(
    only: MessageFilter,
    target: Target,
    at: datetime,
    text: str,
    claimed_by: Target | None,
) -> bool:
    """Return whether a filter selects a message with a text, received or created at an instant.

    With an account it is selected by the place of which a node ``claimed_by`` has it.
    """
    here = target.whole_chat
    place = target if only.account is None else claimed_by
    return (
        (only.channel is None or (place is not None and place.channel == only.channel))
        and (only.account is None or (place is not None and place.account == only.account))
        and (only.chat is None or only.chat.whole_chat == here)
        and (only.since is None or at >= only.since)
        and folded(only.text) in folded(text)
    )


def first_of_each(batch: Iterable[NewInbox]) -> list[NewInbox]:
    """Drop rows whose id is that of an earlier row of the same batch."""
    seen: dict[tuple[str, ...], NewInbox] = {}
    for row in batch:
        target = row.message.target
        seen.setdefault(storable((target.channel, target.account, row.message.external_id)), row)
    return list(seen.values())


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """The person and the job of a run, or of the run that started it."""

    sender: str | None = None
    job: JobId | None = None


NOBODY: Final = RunOrigin()


def sender_of(message: InboundMessage) -> str:
    """Return the sender of a message as one text."""
    if message.source == "api":
        return API_SENDER
    return person_at(message.target, message.sender.id)


def is_of_one_run(key: SessionKey) -> bool:
    """Return whether a session has only one run."""
    return re.fullmatch(ONE_RUN, key) is not None


def job_of(key: SessionKey) -> JobId | None:
    """Return the job whose runs share a session; None for other sessions."""
    return JobId(key.rpartition(":")[2]) if re.fullmatch(OF_JOB, key) else None

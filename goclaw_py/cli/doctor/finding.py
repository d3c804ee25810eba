"""Findings of checks, and the data that checks read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from goclaw_py.config import Settings
from goclaw_py.core.errors import ChannelError
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.scheduler.views import GatewayStatus

if TYPE_CHECKING:
    from goclaw_py.operations.people.operations import PairingApplicant
    from goclaw_py.records import Chat, Person
    from goclaw_py.store.postgres.checkup import Checkup

NOT_CREATED: Final = "not created yet"
"""Value of ``DoctorFacts.database`` if no gateway has run yet."""


class Level(StrEnum):
    """Severity of a finding. Only ``wrong`` makes ``goclaw doctor`` fail."""

    OK = "ok"
    HINT = "hint"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check.

    ``cure`` is empty if nothing is wrong. A problem with ``is_hint`` does not stop anything.
    """

    subject: str
    fact: str
    cure: str = ""
    is_hint: bool = False

    @property
    def level(self) -> Level:
        """Return the severity."""
        if not self.cure:
            return Level.OK
        return Level.HINT if self.is_hint else Level.WRONG


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """This machine and this process.

    Args:
        python: Version of Python.
        release: Version of goclaw_py that is installed here.
        open_files: Limit of open files and connections of a process.
        memory: Available memory in bytes; None if the system does not report it.
        zones: Number of time zones that are installed.
    """

    python: tuple[int, int]
    release: str
    open_files: int
    memory: int | None
    zones: int
    is_root: bool
    in_container: bool
    has_uvloop: bool


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """Jobs, chats, people and failed messages in the database."""

    jobs: Sequence[Job] = ()
    chats: Sequence[Chat] = ()
    people: Sequence[Person] = ()
    asking: Sequence[PairingApplicant] = ()
    dead: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    """All data that checks read, besides the files that the settings name.

    Args:
        database: State of the database, or why it could not be read.
        database_cure: What to do about that, if it is known.
        gateway: Status of the gateway, or why it did not answer; None if none runs here.
        probes: Answers of the channels' servers by name; None if they were not asked.
        openid: What is wrong with the OpenID provider; "": nothing; None: it was not asked.
        work: None if neither the gateway nor the database could provide it.
    """

    settings: Settings
    env: Mapping[str, str] = field(repr=False)
    machine: MachineFacts
    database: Checkup | str
    database_cure: str = ""
    gateway: GatewayStatus | str | None = None
    probes: Sequence[tuple[str, str | ChannelError]] | None = None
    openid: str | None = None
    work: DatabaseFacts | None = None

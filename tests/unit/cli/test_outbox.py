"""``goclaw outbox``: what is on its way out, what is stuck, and what to do (SPEC IO-3, OPS-4)."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.messages import display as post
from goclaw_py.model.messages import FileKind, OutFile
from goclaw_py.ports.store import OutboxState
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fake_post, fakes
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

DEAD = replace(fakes.DEAD, id=7)
EVERY_STATE = [DEAD, fake_post.GIVEN_UP, fake_post.SENT, fake_post.SENDING, fake_post.PENDING]
NOTHING_SPECIAL = {"\x1b", "\x07", "\r", "\u202e", "\u202d"}


@pytest.fixture(autouse=True)
def rows(request: pytest.FixtureRequest) -> None:
    for name in ("database", "gateway"):
        if name in request.fixturenames:
            made = request.getfixturevalue(name)
            control = made.control if isinstance(made, ThreadGateway) else made
            control.rows = list(EVERY_STATE)


def states(control: FakeControl) -> dict[int, str]:
    return {row.id: row.state.value for row in control.rows}


# ---------------------------------------------------------------------------- list


def test_a_message_is_listed_with_where_it_goes_its_tries_and_its_trouble(
    goclaw: Shell, database: FakeControl
) -> None:
    lines = goclaw("outbox", "list").out.splitlines()
    assert " ".join(lines[0].split()) == "ID STATE CHAT AGE TRIES NEXT TRY PROBLEM TEXT"
    dead = next(line for line in lines if line.startswith("7 "))
    for words in ("dead", "console/default/local", " 3 ", "chat not found; possible duplicate"):
        assert words in dead
    assert dead.rstrip().endswith("hello")
    pending = next(line for line in lines if line.startswith("3 "))
    assert "telegram/work/-1001/7" in pending
    assert "due" in pending
    assert "due" not in dead


def test_when_it_is_tried_next_is_told(goclaw: Shell, database: FakeControl) -> None:
    later = datetime.now(UTC) + timedelta(minutes=5, seconds=30)
    made = datetime.now(UTC) - timedelta(hours=3, seconds=10)
    database.rows = [replace(fake_post.PENDING, next_attempt_at=later, created_at=made)]
    out = goclaw("outbox", "list").out
    assert "in 5m 2" in out
    assert "3h 0m" in out


def test_an_age_is_never_negative(goclaw: Shell, database: FakeControl) -> None:
    """The clock of the machine that stored it may be ahead."""
    ahead = datetime.now(UTC) + timedelta(minutes=5)
    database.rows = [replace(fake_post.SENT, created_at=ahead)]
    assert " 0.0s " in goclaw("outbox", "list").out


def test_dead_messages_are_told_first_and_apart_from_the_list(
    goclaw: Shell, database: FakeControl
) -> None:
    hint = "1 message could not be sent; see: goclaw outbox list --state dead\n"
    assert goclaw("outbox", "list", "--limit", "1").err == hint
    assert goclaw("outbox", "list", "--state", "dead").err == ""
    assert goclaw("outbox", "list", "--json").err == ""
    assert goclaw("outbox", "list", "--chat", "-1001").err == ""
    database.rows = [replace(DEAD, id=number) for number in range(1, 1005)]
    assert goclaw("outbox", "list").err.startswith("1000 or more messages could not")
    database.rows = [fake_post.SENT]
    assert goclaw("outbox", "list").err == ""


@pytest.mark.parametrize("state", OutboxState)
def test_every_state_can_be_asked_for(
    goclaw: Shell, database: FakeControl, state: OutboxState
) -> None:
    got = json.loads(goclaw("outbox", "list", "--state", state.value, "--json").out)
    assert [row["state"] for row in got] == [state.value]


@pytest.mark.parametrize(
    ("chat", "ids"),
    [
        ("-1001", [6, 5, 4, 3]),
        ("telegram", [6, 5, 4, 3]),
        ("telegram/work/-1001", [6, 5, 4, 3]),
        ("telegram/work/-1001/7", [6, 5, 4, 3]),
        ("console/default/local", [7]),
        ("-100", []),
        ("telegram/work/-1", []),
        ("7", []),
    ],
)
def test_messages_of_one_chat_are_picked_by_its_id_or_place(
    goclaw: Shell, database: FakeControl, chat: str, ids: list[int]
) -> None:
    got = goclaw("outbox", "list", "--chat", chat, "--json")
    assert [row["id"] for row in json.loads(got.out)] == ids
    assert got.err == ""


def test_a_search_that_did_not_see_everything_says_so(goclaw: Shell, database: FakeControl) -> None:
    others = [replace(fake_post.SENT, id=number) for number in range(2000, 1000, -1)]
    database.rows = [*others, DEAD]
    got = goclaw("outbox", "list", "--chat", "local")
    assert got.out == "no messages\n"
    assert "searched only the newest 1000 messages" in got.err
    assert goclaw("outbox", "list", "--chat", "-1001", "--limit", "9").err == ""


def test_a_text_from_a_chat_stays_in_its_cell(goclaw: Shell, database: FakeControl) -> None:
    """SPEC SEC-1: no second row, no control of the terminal, no turned text."""
    database.rows = [fake_post.PENDING]
    out = goclaw("outbox", "list").out
    assert len(out.splitlines()) == 2
    assert not NOTHING_SPECIAL & set(out)
    assert "<html> bad gateway" in out
    assert "…" in out


def test_a_file_without_words_is_named_by_its_kind(goclaw: Shell, database: FakeControl) -> None:
    empty = replace(fake_post.PENDING.message, text="")
    database.rows = [
        replace(fake_post.PENDING, message=empty),
        replace(fake_post.PENDING, id=2, message=replace(empty, file=None)),
    ]
    _, photo, nothing = goclaw("outbox", "list").out.splitlines()
    assert photo.rstrip().endswith("(photo)")
    assert not nothing.rstrip().endswith(")")


# ---------------------------------------------------------------------------- show


def test_a_message_is_shown_with_everything_that_is_known(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("outbox", "show", "3")
    assert got.code == 0
    facts = dict(line.split("  ", 1) for line in got.out.partition("\n\n")[0].splitlines())
    shown = {name: value.strip() for name, value in facts.items()}
    assert shown["message"] == "3"
    assert shown["chat"] == "telegram/work/-1001/7"
    assert shown["session"] == fake_post.KEY
    assert shown["run"] == fake_post.RUN
    assert shown["next try"].endswith("(due)")
    assert shown["problem"].count("bad gateway") == 30
    assert shown["delivered"] == "not confirmed by the channel"
    assert shown["reply to"] == "55"
    assert shown["draft"] == "56, completed by this message"
    assert shown["file"] == "a .png (photo, image/png) from /w/a.png"
    assert shown["buttons"] == "Yes | No"
    assert shown["to drop"] == "goclaw outbox drop 3"
    assert "to retry" not in shown
    assert gateway.control.calls == [("outbox_row", 3)]


def test_a_message_that_was_delivered_is_shown_as_such(
    goclaw: Shell, database: FakeControl
) -> None:
    """SPEC IO-6."""
    bare = replace(fakes.DEAD.message, run_id=None)
    database.rows = [
        replace(fake_post.SENT, possible_duplicate=True, message=bare),
        replace(fake_post.PENDING, message=replace(bare, file=OutFile(FileKind.VOICE, "/v", "v"))),
    ]
    out = goclaw("outbox", "show", "5").out
    for words in ("sent as", " 77\n", "possible: ", "none"):
        assert words in out
    for words in ("not confirmed", "next try", "goclaw outbox", "reply to", "file", "buttons"):
        assert words not in out
    assert "v (voice) from /v" in goclaw("outbox", "show", "3").out


def test_the_whole_text_is_shown_and_cannot_pass_for_a_fact(
    goclaw: Shell, database: FakeControl
) -> None:
    """SPEC SEC-1."""
    message = replace(fakes.DEAD.message, text=fake_post.MESSAGE.text + "\n\n" + "x" * 5000)
    database.rows = [replace(DEAD, message=message, error="a\nstate    sent\x1b[2J")]
    out = goclaw("outbox", "show", "7").out
    assert [line for line in out.splitlines() if line.startswith("state")] == ["state      dead"]
    assert out.endswith("\ntext\n  first\n  state    ]0;ownedsent\n\n  " + "x" * 5000 + "\n")
    assert "a state sent[2J" in out
    assert not NOTHING_SPECIAL & set(out)


def test_a_message_is_json_for_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    found = json.loads(goclaw("outbox", "show", "7", "--json").out)
    assert (found["id"], found["error"], found["possible_duplicate"]) == (7, "chat not found", True)


def test_an_unknown_message_is_named(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("outbox", "show", "99")
    assert (got.code, got.out) == (1, "")
    assert got.err == "goclaw: there is no message 99 in the outbox\n"


# ---------------------------------------------------------------------------- retry, drop


def test_dead_and_dropped_messages_are_tried_again(goclaw: Shell, gateway: ThreadGateway) -> None:
    """SPEC IO-3."""
    got = goclaw("outbox", "retry", "7", "6", "7")
    assert (got.code, got.out, got.err) == (0, "retrying 2\n", "")
    assert gateway.control.calls[-1] == ("retry_outbox", (7, 6))


def test_what_cannot_be_tried_again_is_named_and_the_rest_is(
    goclaw: Shell, database: FakeControl
) -> None:
    got = goclaw("outbox", "retry", "7", "99", "5", "4", "98")
    assert (got.code, got.out) == (1, "retrying 1\n")
    assert got.err.splitlines() == [
        "goclaw: there is no message 99 in the outbox",
        "goclaw: message 5 is sent, neither dead nor dropped",
        "goclaw: message 4 is sending, neither dead nor dropped",
        "goclaw: there is no message 98 in the outbox",
    ]
    assert states(database)[7] == "pending"


def test_dead_and_waiting_messages_are_given_up(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("outbox", "drop", "7", "3", "4", "5", "6")
    assert (got.code, got.out) == (1, "dropped 2\n")
    assert got.err.splitlines() == [
        "goclaw: message 4 is being sent right now",
        "goclaw: message 5 is already sent",
        "goclaw: message 6 is already dropped",
    ]
    assert states(database) == {7: "dropped", 6: "dropped", 5: "sent", 4: "sending", 3: "dropped"}


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_all_means_the_dead_ones(goclaw: Shell, database: FakeControl, verb: str) -> None:
    got = goclaw("outbox", verb, "--all")
    assert (got.code, got.err) == (0, "")
    assert got.out.endswith(" 1\n")
    assert {row for row, now in states(database).items() if now != "dead"} == {3, 4, 5, 6, 7}
    assert states(database)[6] == "dropped"
    again = goclaw("outbox", verb, "--all")
    assert (again.code, again.out) == (0, f"nothing to {verb}\n")


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_where_nothing_can_be_done_that_is_said(
    goclaw: Shell, database: FakeControl, verb: str
) -> None:
    got = goclaw("outbox", verb, "99")
    assert (got.code, got.out) == (1, f"nothing to {verb}\n")
    assert got.err == "goclaw: there is no message 99 in the outbox\n"


@pytest.mark.parametrize(("verb", "key"), [("retry", "retried"), ("drop", "dropped")])
def test_a_change_is_json_for_programs(
    goclaw: Shell, gateway: ThreadGateway, verb: str, key: str
) -> None:
    got = goclaw("outbox", verb, "7", "99", "--json")
    assert (got.code, json.loads(got.out)) == (1, {key: 1})
    assert got.err == "goclaw: there is no message 99 in the outbox\n"
    assert json.loads(goclaw("outbox", verb, "--all", "--json").out) == {key: 0}


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_all_are_more_than_one_page(goclaw: Shell, gateway: ThreadGateway, verb: str) -> None:
    control = gateway.control
    control.rows = [replace(DEAD, id=number) for number in range(2500, 0, -1)]
    assert goclaw("outbox", verb, "--all").out.endswith(" 2500\n")
    assert "dead" not in states(control).values()
    changes = [call[1] for call in control.calls if call[0] == f"{verb}_outbox"]
    assert [len(ids) for ids in changes if isinstance(ids, tuple)] == [1000, 1000, 500]


def test_so_are_ids_that_are_named(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "PAGE", 2)
    database.rows = [replace(DEAD, id=number) for number in range(1, 6)]
    assert goclaw("outbox", "retry", "1", "2", "3", "4", "5").out == "retrying 5\n"
    changes = [call[1] for call in database.calls if call[0] == "retry_outbox"]
    assert changes == [(1, 2), (3, 4), (5,)]


def test_what_fails_again_at_once_is_not_tried_for_ever(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "PAGE", 2)
    database.rows = [replace(DEAD, id=number) for number in (1, 2)]

    async def retry_outbox(ids: Collection[int]) -> int:
        return len(ids)

    monkeypatch.setattr(database, "retry_outbox", retry_outbox)
    assert goclaw("outbox", "retry", "--all").out == "retrying 2\n"


def test_what_changed_meanwhile_is_told(goclaw: Shell, database: FakeControl) -> None:
    database.overtaken = 1
    got = goclaw("outbox", "retry", "7", "6")
    assert (got.code, got.out) == (1, "retrying 1\n")
    assert got.err == "goclaw: skipped 1, which changed meanwhile\n"


def test_without_a_database_nothing_is_claimed(goclaw: Shell, database: FakeControl) -> None:
    database.failure = fakes.unavailable()
    for command in (["show", "7"], ["retry", "7"], ["drop", "--all"]):
        got = goclaw("outbox", *command)
        assert (got.code, got.out) == (3, "")

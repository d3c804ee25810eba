"""``goclaw inbox``: what failed and got no answer, why, and what to do (SPEC IO-2, OPS-4)."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import typer

from goclaw_py.model.messages import Sender
from goclaw_py.model.outcomes import Outcome
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fake_post, fakes
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

CONTROL = {"\x1b", "\x07", "\r", "\u202e", "\u202d"}


def ids(control: FakeControl) -> list[int]:
    return [letter.row.id for letter in control.mail]


# ---------------------------------------------------------------------------- list


def test_messages_that_could_not_be_worked_on_are_listed_with_the_reason(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("inbox", "list", "--limit", "7")
    assert got.code == 0
    head, lost, dropped = got.out.splitlines()
    assert head.split() == ["ID", "CHAT", "FROM", "AGE", "TRIES", "REASON", "TEXT"]
    assert lost.startswith("8   telegram/work/-1001/7  7 (Ann ")
    assert "lost: the gateway crashed at each attempt" in lost
    assert " 3 " in lost
    assert "dropped: the queue was full, so the oldest message was dropped" in dropped
    assert dropped.rstrip().endswith("(a poll)")
    assert gateway.control.calls == [
        ("dead_letters", False, 8)
    ]  # one more tells whether there are more


def test_messages_that_are_not_done_are_listed_when_asked_for(
    goclaw: Shell, database: FakeControl
) -> None:
    recent = datetime.now(UTC) - timedelta(hours=3, minutes=5, seconds=9)
    database.mail[2] = replace(fake_post.NEXT, row=replace(fake_post.NEXT.row, received_at=recent))
    _, waits, begun = goclaw("inbox", "list", "--waiting").out.splitlines()
    assert "waiting for a run" in waits
    assert " 3h 5m " in waits
    assert f"run {fake_post.RUN} is in progress" in begun


def test_what_a_message_without_words_is_made_of_is_told(
    goclaw: Shell, database: FakeControl
) -> None:
    quiet = replace(fake_post.MESSAGE, text=" \n")
    bare = replace(quiet, attachments=())
    database.mail = [
        replace(fake_post.LOST, row=replace(fake_post.LOST.row, message=message))
        for message in (quiet, bare)
    ]
    _, files, nothing = goclaw("inbox", "list").out.splitlines()
    assert files.rstrip().endswith("(document, voice)")
    assert nothing.rstrip().endswith("(no text)")


def test_nothing_to_list_is_said(goclaw: Shell, database: FakeControl) -> None:
    database.mail = []
    assert goclaw("inbox", "list").out == "no failed messages\n"
    assert goclaw("inbox", "list", "--waiting").out == "no messages waiting\n"


def test_a_list_of_messages_is_json_for_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    lost, dropped = json.loads(goclaw("inbox", "list", "--json").out)
    assert (lost["row"]["outcome"], lost["attempts"]) == ("lost", 3)
    assert dropped["row"]["reason"] == "queue_dropped"
    waiting = json.loads(goclaw("inbox", "list", "--waiting", "--json").out)
    assert [one["row"]["id"] for one in waiting] == [10, 11]


def test_names_and_texts_stay_in_their_cells(goclaw: Shell, database: FakeControl) -> None:
    """SPEC SEC-1: no second row, no control of the terminal, no turned text."""
    out = goclaw("inbox", "list").out
    assert len(out.splitlines()) == 3
    assert not CONTROL & set(out)
    assert "first state ]0;ownedsent" in out


def test_a_name_of_nothing_that_can_be_seen_is_left_out(
    goclaw: Shell, database: FakeControl
) -> None:
    ghost = replace(fake_post.MESSAGE, sender=Sender("7", "\u202e\x1b"))
    database.mail = [replace(fake_post.LOST, row=replace(fake_post.LOST.row, message=ghost))]
    assert "telegram/work/-1001/7  7  " in goclaw("inbox", "list").out


# ---------------------------------------------------------------------------- show


def test_a_message_is_shown_with_everything_that_is_known(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    got = goclaw("inbox", "show", "8")
    assert got.code == 0
    assert not CONTROL & set(got.out)
    head, quoted, text = got.out.split("\n\n")
    names = [line.split("  ")[0] for line in head.splitlines()]
    values = [line.partition("  ")[2].strip() for line in head.splitlines()]
    shown = dict(zip(names, values, strict=True))
    assert shown["state"] == "lost: the gateway crashed at each attempt"
    assert shown["chat"] == "telegram/work/-1001/7"
    assert shown["chat name"] == "Family of Ann"
    assert shown["from"].startswith("7 (Ann ")
    assert shown["session"] == fake_post.KEY
    assert (shown["run"], shown["tries"]) == (fake_post.RUN, "3")
    assert (shown["reply to"], shown["edits"]) == ("54", "-1001:50")
    assert shown["received as"] == "-1001:55"
    assert shown["to retry"] == "goclaw inbox retry 8"
    assert "continues it" in shown["cut"]
    files = [value for name, value in zip(names, values, strict=True) if name == "file"]
    assert files == [
        "a .pdf (document, application/pdf, 2048 bytes)",
        "unnamed (voice)",
    ]
    assert quoted == "quoted\n  what\n  was said"
    assert text == "text\n  first\n  state    ]0;ownedsent\n"


def test_a_message_that_waits_has_no_end_and_nothing_to_try_again(
    goclaw: Shell, database: FakeControl
) -> None:
    plain = replace(
        fake_post.MESSAGE,
        reply_to=None,
        edits=None,
        album=None,
        cut=False,
        quote="",
        attachments=(),
        place_name="",
        text="next",
    )
    database.mail = [replace(fake_post.NEXT, row=replace(fake_post.NEXT.row, message=plain))]
    out = goclaw("inbox", "show", "10").out
    for words in ("waiting for a run", "not yet", "none", "\n\ntext\n  next\n"):
        assert words in out
    for name in ("to retry", "reply to", "edits", "album", "cut", "quoted", "file", "chat name"):
        assert name not in out


def test_a_press_is_shown_with_its_data(goclaw: Shell, database: FakeControl) -> None:
    out = goclaw("inbox", "show", "9").out
    assert "done:1" in out
    assert "a poll" in out
    assert "\ntext\n" not in out


def test_a_message_is_json_for_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    found = json.loads(goclaw("inbox", "show", "8", "--json").out)
    assert found["row"]["message"]["attachments"][0]["size"] == 2048


def test_an_unknown_message_is_named(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("inbox", "show", "99")
    assert (got.code, got.out) == (1, "")
    assert got.err == "goclaw: there is no message 99 in the inbox\n"


# ---------------------------------------------------------------------------- retry, drop


@pytest.mark.parametrize(
    ("verb", "words", "call"),
    [("retry", "retrying 2", "retry_dead_letters"), ("drop", "dropped 2", "dismiss_dead_letters")],
)
def test_messages_are_tried_again_or_given_up_by_id(
    goclaw: Shell, gateway: ThreadGateway, verb: str, words: str, call: str
) -> None:
    got = goclaw("inbox", verb, "8", "9", "8")
    assert (got.code, got.out, got.err) == (0, f"{words}\n", "")
    assert gateway.control.calls[-1] == (call, (8, 9))
    assert ids(gateway.control) == [10, 11, 12]


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_what_is_not_done_or_answered_stays_and_is_named(
    goclaw: Shell, database: FakeControl, verb: str
) -> None:
    got = goclaw("inbox", verb, "10", "12", "99")
    assert (got.code, got.out) == (1, f"nothing to {verb}\n")
    assert got.err.splitlines() == [
        "goclaw: message 10 is still in progress or waiting",
        "goclaw: message 12 is answered",
        "goclaw: there is no message 99 in the inbox",
    ]
    assert ids(database) == [8, 9, 10, 11, 12]


def test_a_message_that_was_stopped_can_be_tried_again(
    goclaw: Shell, database: FakeControl
) -> None:
    row = replace(fake_post.LOST.row, outcome=Outcome.CANCELLED)
    database.mail = [replace(fake_post.LOST, row=row)]
    assert goclaw("inbox", "retry", "8").out == "retrying 1\n"


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_all_are_those_that_could_not_be_worked_on(
    goclaw: Shell, database: FakeControl, verb: str
) -> None:
    assert goclaw("inbox", verb, "--all").out.endswith(" 2\n")
    assert ids(database) == [10, 11, 12]
    got = goclaw("inbox", verb, "--all")
    assert (got.code, got.out) == (0, f"nothing to {verb}\n")


@pytest.mark.parametrize(("verb", "key"), [("retry", "retried"), ("drop", "dropped")])
def test_a_change_is_json_for_programs(
    goclaw: Shell, gateway: ThreadGateway, verb: str, key: str
) -> None:
    assert json.loads(goclaw("inbox", verb, "--all", "--json").out) == {key: 2}


def test_a_person_at_a_terminal_is_asked_before_messages_are_given_up(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def no(text: str, *, abort: bool, err: bool) -> None:
        asked.append(text)
        assert abort
        assert err
        raise typer.Abort

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", no)
    got = goclaw("inbox", "drop", "8")
    assert got.code == 1
    assert got.err.startswith("8  from 7 (Ann ")
    assert not CONTROL & set(got.err)
    assert asked[0].startswith("Drop it? ")
    assert ids(database) == [8, 9, 10, 11, 12]
    assert goclaw("inbox", "drop", "8", "--yes").code == 0
    assert goclaw("inbox", "retry", "9").code == 0
    assert len(asked) == 1


def test_without_a_database_nothing_is_claimed(goclaw: Shell, database: FakeControl) -> None:
    database.failure = fakes.unavailable()
    for command in (["list"], ["show", "8"], ["retry", "8"], ["drop", "--all"]):
        got = goclaw("inbox", *command)
        assert (got.code, got.out) == (3, "")

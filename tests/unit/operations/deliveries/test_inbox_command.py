"""``goclaw deliveries incoming``: what failed, why, and what to do (SPEC IO-2, OPS-4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.output import clock
from goclaw_py.core.messages import Sender
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import DeadLetterQuery
from tests.unit.cli.conftest import Confirmations, Done, Shell, ThreadGateway
from tests.unit.web import fake_names
from tests.unit.web.fakes import FakeControl

CONTROL = {"\x1b", "\x07", "\r", "\u202e", "\u202d"}


def ids(control: FakeControl) -> list[int]:
    return [letter.row.id for letter in control.messages.mail]


def test_failed_messages_are_listed_with_the_reason(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("deliveries", "incoming", "list", "--limit", "7")
    assert got.code == 0
    # SPEC SEC-1: names and texts make no second row, control no terminal and turn no text.
    assert not CONTROL & set(got.out)
    head, lost, dropped = got.out.splitlines()
    assert head.split() == [
        *("ID", "CHAT", "FROM", "RECEIVED", "ATTEMPTS", "REASON", "TEXT", "PERSON", "KEY")
    ]
    assert lost.startswith("8   telegram -1001 / topic 7  telegram 7  ")
    assert "  7 (Ann " in lost
    assert lost.endswith(fake_names.KEY)
    for words in ("lost: the gateway crashed at each attempt", "first state ]0;ownedsent", " 3 "):
        assert words in lost
    assert "dropped: the queue was full, so the oldest message was dropped" in dropped
    assert "  (a poll)  " in dropped
    # One more than the limit tells whether there are more.
    assert gateway.control.calls == [("dead_letters", DeadLetterQuery(limit=8))]
    rows = goclaw.data("deliveries", "incoming", "list")
    assert [row["row"]["outcome"] for row in rows] == ["lost", "dropped"]
    assert (rows[0]["attempts"], rows[1]["row"]["reason"]) == (3, "queue_dropped")
    assert [
        one["row"]["id"]
        for one in goclaw.data("deliveries", "incoming", "list", "--waiting")  # its former name
    ] == [10]


def test_waiting_messages_are_listed_when_asked_for(goclaw: Shell, database: FakeControl) -> None:
    recent = datetime.now(UTC) - timedelta(hours=3, minutes=5, seconds=9)
    database.messages.mail[2] = replace(
        fake_names.NEXT, row=replace(fake_names.NEXT.row, received_at=recent)
    )
    _, waits = goclaw("deliveries", "incoming", "list", "--state", "waiting").out.splitlines()
    _, begun = goclaw("deliveries", "incoming", "list", "--state", "running").out.splitlines()
    assert "waiting for a run" in waits
    assert f" {clock(recent)} " in waits
    assert f"run {fake_names.RUN} is in progress" in begun
    database.messages.mail = []
    assert goclaw("deliveries", "incoming", "list").out == "no failed messages\n"
    for state in ("waiting", "running", "dismissed"):
        got = goclaw("deliveries", "incoming", "list", "--state", state)
        assert got.out == f"no {state} messages\n"


def test_what_cannot_be_seen_is_named_or_left_out(goclaw: Shell, database: FakeControl) -> None:
    quiet = replace(fake_names.MESSAGE, text=" \n")
    nameless = Sender("7", "\u202e\x1b")
    database.messages.mail = [
        replace(fake_names.LOST, row=replace(fake_names.LOST.row, message=message))
        for message in (quiet, replace(quiet, attachments=(), sender=nameless))
    ]
    _, files, nothing = goclaw("deliveries", "incoming", "list").out.splitlines()
    assert "  (document, voice)  " in files
    assert " ".join(nothing.split()).endswith(f" (no text) 7 {fake_names.KEY}")


def test_all_that_is_known_of_a_message_is_shown(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("deliveries", "incoming", "show", "8")
    assert got.code == 0
    assert not CONTROL & set(got.out)
    head, quoted, text = got.out.split("\n\n")
    names = [line.split("  ")[0] for line in head.splitlines()]
    values = [line.partition("  ")[2].strip() for line in head.splitlines()]
    shown = dict(zip(names, values, strict=True))
    assert (
        shown.items()
        >= {
            "state": "lost: the gateway crashed at each attempt",
            "chat": "telegram -1001 / topic 7 (telegram/work/-1001/7)",
            "chat name": "Family of Ann",
            "session": f"telegram -1001 / topic 7 ({fake_names.KEY})",
            "run": fake_names.RUN,
            "attempts": "3",
            "reply to": "54",
            "edits": "-1001:50",
            "received as": "-1001:55",
            "to retry": "goclaw deliveries incoming retry 8",
        }.items()
    )
    assert shown["from"].startswith("7 (Ann ")
    assert "continues it" in shown["cut"]
    files = [value for name, value in zip(names, values, strict=True) if name == "file"]
    assert files == ["a .pdf (document, application/pdf, 2048 bytes)", "unnamed (voice)"]
    assert quoted == "quoted\n  what\n  was said"
    assert text == "text\n  first\n  state    ]0;ownedsent\n"
    found = goclaw.data("deliveries", "incoming", "show", "8")
    assert found["row"]["message"]["attachments"][0]["size"] == 2048
    unknown = "goclaw: there is no incoming message 99; see: goclaw deliveries incoming list\n"
    assert goclaw("deliveries", "incoming", "show", "99") == Done(1, "", unknown)


def test_a_message_that_waits_has_no_end(goclaw: Shell, database: FakeControl) -> None:
    bare = replace(fake_names.MESSAGE, reply_to=None, edits=None, album=None, cut=False, quote="")
    plain = replace(bare, attachments=(), place_name="", text="next")
    database.messages.mail = [
        replace(fake_names.NEXT, row=replace(fake_names.NEXT.row, message=plain))
    ]
    out = goclaw("deliveries", "incoming", "show", "10").out
    for words in ("waiting for a run", "not yet", "none", "\n\ntext\n  next\n"):
        assert words in out
    for name in ("to retry", "reply to", "edits", "album", "cut", "quoted", "file", "chat name"):
        assert name not in out


def test_a_press_is_shown_and_what_was_stopped_can_be_tried_again(
    goclaw: Shell, database: FakeControl
) -> None:
    out = goclaw("deliveries", "incoming", "show", "9").out
    assert "done:1" in out
    assert "a poll" in out
    assert "\ntext\n" not in out
    row = replace(fake_names.LOST.row, outcome=Outcome.CANCELLED)
    database.messages.mail = [replace(fake_names.LOST, row=row)]
    assert goclaw("deliveries", "incoming", "retry", "8").out == "retrying 1 message\n"


@pytest.mark.parametrize(("verb", "does", "call", "obstacle"), [
    ("retry", "retrying", "retry_dead_letters", "still in progress or waiting"),
    ("drop", "dropped", "dismiss_dead_letters", "in progress"),
])  # fmt: skip
def test_messages_are_tried_again_or_given_up(
    goclaw: Shell, gateway: ThreadGateway, verb: str, does: str, call: str, obstacle: str
) -> None:
    control, mail = gateway.control, list(gateway.control.messages.mail)
    done, yes = Done(0, f"{does} 2 messages\n", ""), ["--yes"] if verb == "drop" else []
    got = goclaw("deliveries", "incoming", verb, "11", "12", "99", *yes)
    assert (got.code, got.out) == (1, f"nothing to {verb}\n")
    assert got.err.splitlines() == [
        f"goclaw: message 11 is {obstacle}",
        "goclaw: message 12 is answered",
        "goclaw: there is no incoming message 99; see: goclaw deliveries incoming list",
    ]
    assert ids(control) == [8, 9, 10, 11, 12]
    assert goclaw("deliveries", "incoming", verb, "8", "9", "8", *yes) == done
    assert control.calls[-1] == (call, (8, 9))
    assert ids(control) == [10, 11, 12]
    # All are those that failed.
    control.messages.mail = list(mail)
    assert goclaw("deliveries", "incoming", verb, "--all", *yes) == done
    assert ids(control) == [10, 11, 12]
    assert goclaw("deliveries", "incoming", verb, "--all", *yes).out == f"nothing to {verb}\n"
    control.messages.mail = mail
    assert goclaw.data("deliveries", "incoming", verb, "--all", *yes) == {
        "retried" if verb == "retry" else "dropped": 2
    }


def test_a_person_at_a_terminal_is_asked_before_messages_are_given_up(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Confirmations(monkeypatch).asked
    got = goclaw("deliveries", "incoming", "drop", "8")
    assert got.code == 1
    assert got.err.startswith("8  from 7 (Ann ")
    assert not CONTROL & set(got.err)
    assert asked[0].startswith("Drop it? ")
    assert ids(database) == [8, 9, 10, 11, 12]
    assert goclaw("deliveries", "incoming", "drop", "8", "--yes").code == 0
    assert goclaw("deliveries", "incoming", "retry", "9").code == 0
    assert len(asked) == 1

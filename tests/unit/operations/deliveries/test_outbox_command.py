"""``goclaw deliveries``: what is on its way out, what is stuck, and what to do.

SPEC IO-3, IO-6, OPS-4, SEC-1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.cli.output import clock
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.operations.deliveries.command import selection
from goclaw_py.records import OutboxState
from tests.unit.cli.conftest import Confirmations, Done, Shell, ThreadGateway
from tests.unit.cli.processes import person_at
from tests.unit.cli.test_tables import CODES
from tests.unit.web import fake_names, fakes
from tests.unit.web.fakes import FakeControl

DEAD = replace(fakes.DEAD, id=7)
EVERY_STATE = [DEAD, fake_names.GIVEN_UP, fake_names.SENT, fake_names.SENDING, fake_names.PENDING]
CONTROL = {"\x1b", "\x07", "\r", "\u202e", "\u202d"}
UNKNOWN = "goclaw: there is no delivery 99; see: goclaw deliveries list\n"

each_verb = pytest.mark.parametrize("verb", ["retry", "drop"])
YES = {"retry": (), "drop": ("--yes",)}


@pytest.fixture(autouse=True)
def rows(request: pytest.FixtureRequest) -> None:
    for name in ("database", "gateway"):
        if name in request.fixturenames:
            made = request.getfixturevalue(name)
            control = made.control if isinstance(made, ThreadGateway) else made
            control.messages.rows = list(EVERY_STATE)


def states(control: FakeControl) -> dict[int, str]:
    return {row.id: row.state.value for row in control.messages.rows}


def changed(control: FakeControl, verb: str) -> list[object]:
    """The ids of each call that changed some."""
    return [call[1] for call in control.calls if call[0] == f"{verb}_outbox"]


# ---------------------------------------------------------------------------- list


def test_a_list_shows_chat_tries_and_trouble(goclaw: Shell, database: FakeControl) -> None:
    lines = goclaw("deliveries", "list").out.splitlines()
    assert " ".join(lines[0].split()) == "ID STATE CHAT CREATED ATTEMPTS NEXT TRY PROBLEM TEXT KEY"
    dead = next(line for line in lines if line.startswith("7 "))
    for words in (
        "failed",
        "console local",
        " 3 ",
        "  hello  ",
        "chat not found; possible duplicate",
    ):
        assert words in dead
    assert dead.endswith("console/default/local")
    pending = next(line for line in lines if line.startswith("3 "))
    assert "telegram -1001 / topic 7" in pending
    assert pending.endswith("telegram/work/-1001/7")
    assert "due" in pending
    assert "due" not in dead


def test_ages_and_the_next_try_are_told(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    later = now + timedelta(minutes=5, seconds=30)
    made = now - timedelta(hours=3, seconds=10)
    # The clock of the machine that stored it may be ahead: no age is negative.
    ahead = now + timedelta(minutes=5)
    database.messages.rows = [
        replace(fake_names.PENDING, next_attempt_at=later, created_at=made),
        replace(fake_names.SENT, created_at=ahead),
    ]
    _, waits, sent = goclaw("deliveries", "list").out.splitlines()
    assert f"{clock(later)} (in 5 min)" in waits
    assert clock(made) in waits
    assert clock(ahead) in sent
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    _, waits, sent = CODES.sub("", goclaw("deliveries", "list").out).splitlines()
    assert "  in 5 min  " in waits
    assert "  3 h ago  " in waits
    assert "  now  " in sent


@pytest.mark.parametrize(("former", "state"), [("dead", "failed"), ("pending", "waiting")])
def test_a_former_state_is_accepted_and_in_no_help(
    goclaw: Shell, database: FakeControl, former: str, state: str
) -> None:
    (row,) = goclaw.data("deliveries", "list", "--state", former)
    assert row["state"] == state
    assert former not in goclaw("deliveries", "list", "--help").out


def test_what_a_list_does_not_show_is_told(goclaw: Shell, database: FakeControl) -> None:
    hint = "1 message could not be delivered; see: goclaw deliveries list --state failed\n"
    assert goclaw("deliveries", "list", "--limit", "1").err == hint
    assert goclaw("deliveries", "list", "--state", "failed").err == ""
    assert goclaw("deliveries", "list", "--json").err == ""
    assert goclaw("deliveries", "list", "--chat", "-1001").err == f"{STORED_ONLY}\n"
    database.messages.rows = [replace(DEAD, id=number) for number in range(1, 1005)]
    assert goclaw("deliveries", "list").err.startswith("1000 or more messages could not")
    database.messages.rows = [fake_names.SENT]
    assert goclaw("deliveries", "list").err == ""
    others = [replace(fake_names.SENT, id=number) for number in range(2000, 1000, -1)]
    database.messages.rows = [*others, DEAD]
    got = goclaw("deliveries", "list", "--chat", "local")
    assert got.out == "no matching messages; to list all: goclaw deliveries list\n"
    assert "searched only the newest 1000 messages" in got.err
    assert goclaw("deliveries", "list", "--chat", "-1001", "--limit", "9").err == ""


@pytest.mark.parametrize(("option", "value", "ids"), [
    ("--chat", "-1001", [6, 5, 4, 3]),
    ("--chat", "telegram", [6, 5, 4, 3]),
    ("--chat", "telegram/work/-1001", [6, 5, 4, 3]),
    ("--chat", "telegram/work/-1001/7", [6, 5, 4, 3]),
    ("--chat", "console/default/local", [7]),
    ("--chat", "console local", [7]),
    ("--chat", "-100", []),
    ("--chat", "telegram/work/-1", []),
    ("--chat", "7", []),
    *(("--state", row.state.value, [row.id]) for row in EVERY_STATE),
])  # fmt: skip
def test_messages_of_a_chat_or_in_a_state_are_picked(
    goclaw: Shell, database: FakeControl, option: str, value: str, ids: list[int]
) -> None:
    assert {row.state for row in EVERY_STATE} == set(OutboxState)
    got = goclaw("deliveries", "list", option, value, "--json")
    assert [row["id"] for row in json.loads(got.out)] == ids
    assert got.err == ""


def test_texts_stay_in_their_cells_and_files_are_named_by_their_kind(
    goclaw: Shell, database: FakeControl
) -> None:
    """SPEC SEC-1: no second row, no control of the terminal, no turned text."""
    database.messages.rows = [fake_names.PENDING]
    out = goclaw("deliveries", "list").out
    assert len(out.splitlines()) == 2
    assert not CONTROL & set(out)
    assert "<html> bad gateway" in out
    assert "…" in out
    empty = replace(fake_names.PENDING.message, text="")
    database.messages.rows = [
        replace(fake_names.PENDING, message=empty),
        replace(fake_names.PENDING, id=2, message=replace(empty, file=None)),
    ]
    _, photo, nothing = goclaw("deliveries", "list").out.splitlines()
    assert "(photo)" in photo
    assert "(photo)" not in nothing


def test_markup_is_not_shown(goclaw: Shell, database: FakeControl) -> None:
    """Telegram's parts are HTML; what a person wrote in no part is shown as it is."""
    message = replace(DEAD.message, text="<code>a &lt;b&gt;</code> &amp; c", rich=True)
    database.messages.rows = [replace(DEAD, message=message)]
    for command in (("list",), ("show", "7")):
        assert "a <b> & c" in goclaw("deliveries", *command).out
    database.messages.rows = [replace(DEAD, message=replace(message, rich=False))]
    assert "<code>a &lt;b&gt;</code>" in goclaw("deliveries", "show", "7").out


# ---------------------------------------------------------------------------- show


def test_all_that_is_known_of_a_message_is_shown(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("deliveries", "show", "3")
    assert got.code == 0
    facts = dict(line.split("  ", 1) for line in got.out.partition("\n\n")[0].splitlines())
    shown = {name: value.strip() for name, value in facts.items()}
    assert (
        shown.items()
        >= {
            "delivery": "3",
            "chat": "telegram -1001 / topic 7 (telegram/work/-1001/7)",
            "session": f"telegram -1001 / topic 7 ({fake_names.KEY})",
            "run": fake_names.RUN,
            "reply to": "55",
            "draft": "56, completed by this message",
            "file": "a .png (photo, image/png) from /w/a.png",
            "buttons": "Yes | No",
            "to drop": "goclaw deliveries drop 3",
        }.items()
    )
    assert shown["next try"].endswith("(due)")
    assert shown["problem"].count("bad gateway") == 30
    assert not {"to retry", "delivered"} & shown.keys()
    assert gateway.control.calls == [("outbox_row", 3)]
    dead = goclaw.data("deliveries", "show", "7")
    assert (dead["id"], dead["error"], dead["possible_duplicate"]) == (7, "chat not found", True)
    assert goclaw("deliveries", "show", "99") == Done(1, "", UNKNOWN)


def test_a_delivered_message_is_shown_and_a_text_passes_for_no_fact(
    goclaw: Shell, database: FakeControl
) -> None:
    bare = replace(fakes.DEAD.message, run_id=None)
    database.messages.rows = [
        replace(fake_names.SENT, possible_duplicate=True, message=bare),
        replace(fake_names.PENDING, message=replace(bare, file=OutFile(FileKind.VOICE, "/v", "v"))),
    ]
    out = goclaw("deliveries", "show", "5").out
    for words in ("sent as", " 77\n", "possible: ", "none"):
        assert words in out
    for words in ("not confirmed", "next try", "goclaw deliveries", "reply to", "file", "buttons"):
        assert words not in out
    assert "v (voice) from /v" in goclaw("deliveries", "show", "3").out
    message = replace(fakes.DEAD.message, text=fake_names.MESSAGE.text + "\n\n" + "x" * 5000)
    database.messages.rows = [replace(DEAD, message=message, error="a\nstate    sent\x1b[2J")]
    out = goclaw("deliveries", "show", "7").out
    assert [line for line in out.splitlines() if line.startswith("state")] == ["state      failed"]
    assert out.endswith("\ntext\n  first\n  state    ]0;ownedsent\n\n  " + "x" * 5000 + "\n")
    assert "a state sent[2J" in out
    assert not CONTROL & set(out)


# ---------------------------------------------------------------------------- retry, drop


def test_dead_and_dropped_messages_are_tried_again(goclaw: Shell, gateway: ThreadGateway) -> None:
    assert goclaw("deliveries", "retry", "7", "6", "7") == Done(0, "retrying 2 messages\n", "")
    assert gateway.control.calls[-1] == ("retry_outbox", (7, 6))


def test_what_cannot_be_done_is_named(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("deliveries", "retry", "7", "99", "5", "4", "98")
    assert (got.code, got.out) == (1, "retrying 1 message\n")
    assert got.err.splitlines() == [
        "goclaw: there is no delivery 99; see: goclaw deliveries list",
        "goclaw: message 5 is sent, neither failed nor dropped",
        "goclaw: message 4 is sending, neither failed nor dropped",
        "goclaw: there is no delivery 98; see: goclaw deliveries list",
    ]
    assert states(database)[7] == "waiting"
    got = goclaw("deliveries", "drop", "7", "3", "4", "5", "6", "--yes")
    assert (got.code, got.out) == (1, "dropped 2 messages\n")
    assert got.err.splitlines() == [
        "goclaw: message 4 is being sent right now",
        "goclaw: message 5 is already sent",
        "goclaw: message 6 is already dropped",
    ]
    assert states(database) == {7: "dropped", 6: "dropped", 5: "sent", 4: "sending", 3: "dropped"}


@each_verb
def test_all_means_the_dead_ones(goclaw: Shell, database: FakeControl, verb: str) -> None:
    got = goclaw("deliveries", verb, "--all", *YES[verb])
    assert (got.code, got.err) == (0, "")
    assert got.out.endswith(" 1 message\n")
    assert {row for row, now in states(database).items() if now != "failed"} == {3, 4, 5, 6, 7}
    assert states(database)[6] == "dropped"
    assert goclaw("deliveries", verb, "--all", *YES[verb]) == Done(0, f"nothing to {verb}\n", "")
    assert goclaw("deliveries", verb, "99") == Done(1, f"nothing to {verb}\n", UNKNOWN)


@each_verb
def test_a_change_is_json_for_programs(goclaw: Shell, gateway: ThreadGateway, verb: str) -> None:
    key = {"retry": "retried", "drop": "dropped"}[verb]
    got = goclaw("deliveries", verb, "7", "99", "--json", *YES[verb])
    assert (got.code, json.loads(got.out), got.err) == (1, {key: 1}, UNKNOWN)
    assert goclaw.data("deliveries", verb, "--all", *YES[verb]) == {key: 0}


@each_verb
def test_all_are_more_than_one_page(goclaw: Shell, gateway: ThreadGateway, verb: str) -> None:
    control = gateway.control
    control.messages.rows = [replace(DEAD, id=number) for number in range(2500, 0, -1)]
    assert goclaw("deliveries", verb, "--all", *YES[verb]).out.endswith(" 2,500 messages\n")
    assert "failed" not in states(control).values()
    sizes = [len(ids) for ids in changed(control, verb) if isinstance(ids, tuple)]
    assert sizes == [1000, 1000, 500]


def test_pages_go_one_after_the_other_and_not_for_ever(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "PAGE", 2)
    database.messages.rows = [replace(DEAD, id=number) for number in range(1, 6)]
    assert goclaw("deliveries", "retry", "1", "2", "3", "4", "5").out == "retrying 5 messages\n"
    assert changed(database, "retry") == [(1, 2), (3, 4), (5,)]
    # What fails again at once is not tried for ever.
    monkeypatch.setattr(selection, "PAGE", 2)
    database.messages.rows = [replace(DEAD, id=number) for number in (1, 2)]

    async def retry_outbox(ids: Collection[int], *, now: datetime) -> int:
        del now
        return len(ids)

    monkeypatch.setattr(database.messages, "retry_outbox", retry_outbox)
    assert goclaw("deliveries", "retry", "--all").out == "retrying 2 messages\n"


def test_what_changed_meanwhile_is_told(goclaw: Shell, database: FakeControl) -> None:
    database.messages.overtaken = 1
    said = "goclaw: skipped 1, which changed meanwhile\n"
    assert goclaw("deliveries", "retry", "7", "6") == Done(1, "retrying 1 message\n", said)


@pytest.fixture
def control(gateway: ThreadGateway) -> FakeControl:
    gateway.control.messages.rows = [DEAD, fake_names.PENDING]
    return gateway.control


def test_a_person_is_asked_before_messages_are_given_up(control: FakeControl) -> None:
    with person_at("outbox", "drop", "7", "3") as person:
        shown = person.sees("Drop 2 messages? Dropped messages are not sent unless you retry them.")
        assert "7  to console local: hello" in shown
        assert not {"\x1b", "\u202e"} & set(shown)
        assert states(control)[7] == "failed"
        person.types("y\n")
        person.sees("dropped 2")
        assert person.sees_it_end()[0] == 0
    assert states(control)[7] == "dropped"


@pytest.mark.slow
def test_who_says_no_changes_nothing(control: FakeControl) -> None:
    control.messages.rows = [replace(DEAD, id=number) for number in range(1, 9)]
    with person_at("outbox", "drop", "--all") as person:
        assert "… and 3 more" in person.sees("Drop all 8 messages?")
        person.types("\n")
        person.sees("goclaw: aborted")
        assert person.sees_it_end()[0] == 1
    assert set(states(control).values()) == {"failed"}


@pytest.mark.slow
def test_ctrl_c_at_a_question_is_no_answer(control: FakeControl) -> None:
    with person_at("outbox", "drop", "7") as person:
        person.sees("[y/N]: ")
        person.types("x\n")
        person.sees("goclaw: answer y or n")
        person.sees("[y/N]: ")
        person.interrupts()
        code, shown = person.sees_it_end()
        assert (code, shown) == (130, "\r\ngoclaw: interrupted\r\n")
    assert states(control)[7] == "failed"


def test_without_a_terminal_nothing_is_dropped(goclaw: Shell, control: FakeControl) -> None:
    got = goclaw("deliveries", "drop", "7")
    assert (got.code, got.out) == (2, "")
    assert "confirm with --yes. See: goclaw deliveries drop --help" in got.err
    assert states(control)[7] == "failed"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("drop", "7", "--yes"), ("retry", "7")])
def test_who_says_yes_is_not_asked(control: FakeControl, arguments: tuple[str, ...]) -> None:
    with person_at("outbox", *arguments) as person:
        person.sees(" 1")
        assert person.sees_it_end()[0] == 0
    assert states(control)[7] != "failed"


def test_one_message_is_it(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.messages.rows = [DEAD]
    asked = Confirmations(monkeypatch).asked
    assert goclaw("deliveries", "drop", "7").code == 1
    assert asked == ["Drop it? Dropped messages are not sent unless you retry them."]

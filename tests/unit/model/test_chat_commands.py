"""Commands that people type."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.model.chat_commands import (
    MENU,
    Command,
    JobAction,
    JobButton,
    Misspelt,
    StopCommand,
    TypedCommand,
    addresses_another_bot,
    command_of,
    is_stop_word,
    job_buttons,
    our_command,
    our_command_of,
    parse_command,
    stop_data,
)
from goclaw_py.model.ids import OccurrenceId, RunId
from goclaw_py.model.messages import Attachment, FileKind, InboundMessage, PeerKind, Sender, Target

ONE, ALL = StopCommand(everything=False), StopCommand(everything=True)
HELLO = InboundMessage(
    "42:1",
    Target("telegram", "default", "42"),
    PeerKind.DIRECT,
    Sender("7"),
    "hello",
    datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("stop", ONE),
        ("stopall", ALL),
        ("start", TypedCommand("start")),
        ("help", TypedCommand("help")),
        ("status", TypedCommand("status")),
        ("new", TypedCommand("new")),
        ("reset", TypedCommand("new")),
        ("queue", TypedCommand("queue")),
        ("jobs", TypedCommand("jobs")),
        ("timezone", TypedCommand("timezone")),
        ("heartbeat", TypedCommand("heartbeat")),
        ("mute", TypedCommand("mute")),
    ],
)
def test_every_command_is_recognised_by_its_word(word: str, command: Command) -> None:
    """SPEC CMD-1, CMD-5."""
    assert parse_command(f"/{word}") == command
    assert parse_command(f"/{word.upper()}") == command


@pytest.mark.parametrize(
    "text",
    [
        "/stop",
        "/STOP",
        "/Stop",
        "  /stop  ",
        "\n\t/stop",
        "/stop now please",
        "/stop\nand then this",
        "/stop\tnow",
        "/stop@Goclaw_Bot",
        "/stop@goclaw_bot please",
        " /sToP@GOCLAW_BOT\n",
        "/stop.",
        "/stop!!!",
        "/stop, please",
        "/STOP please",
        "/stop@goclaw_bot!",
    ],
)
def test_stop_is_recognised_in_any_case_with_blanks_and_text_after_it(text: str) -> None:
    """SPEC CMD-2."""
    assert parse_command(text, "goclaw_bot") == ONE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "please /stop",
        "do not\n/stop",
        "/ stop",
        "//stop",
        "/stopp",
        "/stop.txt",
        "/stop,please",
        "/stop/all",
        "/stop_all",
        "/stop2",
        "/stop@",
        "/stop@goclaw-bot",
        "/unknown",
        "/\N{LATIN SMALL LETTER LONG S}top",
    ],
)
def test_what_only_looks_like_stop_belongs_to_the_agent(text: str) -> None:
    """SPEC CMD-2."""
    assert parse_command(text, "goclaw_bot") is None


@pytest.mark.parametrize(
    "text",
    [
        "stop",
        "STOP!!",
        " Halt. ",
        "cancel",
        "Abbrechen",
        "arre\u0302te",
        "СТОП",
        "停止。",
        "¡para!",
    ],
)
def test_a_bare_word_in_many_languages_means_stop(text: str) -> None:
    """SPEC CMD-2."""
    message = replace(HELLO, text=text)
    assert is_stop_word(message)
    assert command_of(message, None) is None  # the gateway knows whether something runs
    assert our_command_of(message) == ONE


@pytest.mark.parametrize(
    "message",
    [
        replace(HELLO, text="stop the music"),
        replace(HELLO, text="unstoppable"),
        replace(HELLO, text="!"),
        replace(HELLO, text=""),
        replace(HELLO, text="stop" + "!" * 100),
        replace(HELLO, text="stop", addressed=False),
        replace(HELLO, text="stop", edits="42:0"),
        replace(HELLO, text="stop", attachments=(Attachment(FileKind.PHOTO, "1"),)),
    ],
)
def test_the_word_in_anything_longer_means_nothing(message: InboundMessage) -> None:
    assert not is_stop_word(message)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/stpo", "stop"),
        ("/STP", "stop"),
        ("/stopp!", "stop"),
        ("/stopal", "stopall"),
        ("/hlep", "help"),
        ("/job", "jobs"),
        ("/stats", "status"),
        ("/hartbeat@goclaw_bot", "heartbeat"),
    ],
)
def test_what_is_nearly_a_command_is_asked_about(text: str, meant: str) -> None:
    """SPEC CMD-2."""
    message = replace(HELLO, text=text)
    assert command_of(message, "goclaw_bot") == our_command_of(message) == Misspelt(meant)
    assert command_of(replace(message, addressed=False), "goclaw_bot") is None
    assert command_of(replace(message, text=f"{text} now"), "goclaw_bot") is None


@pytest.mark.parametrize("text", ["/shop", "/news", "/top", "/weather", "/etc/stpo", "stpo", "/s"])
def test_other_words_with_a_slash_belong_to_the_agent(text: str) -> None:
    assert command_of(replace(HELLO, text=text), None) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/queue", ""),
        ("/queue   ", ""),
        ("/queue steer", "steer"),
        ("/QUEUE@goclaw_bot  Steer please", "steer"),
        ("/queue\tcollect\nand more", "collect"),
        ("/queue\ncollect", ""),
        ("/queue \n collect", ""),
    ],
)
def test_the_word_after_queue_on_its_line_is_the_mode(text: str, word: str) -> None:
    """SPEC CMD-2, CMD-5: text on the next line is only text."""
    command = parse_command(text, "goclaw_bot")
    assert isinstance(command, TypedCommand)
    assert (command.name, command.action) == ("queue", word)
    assert our_command(text) == command


@pytest.mark.parametrize(
    ("text", "action", "line"),
    [
        ("/jobs", "", ""),
        ("/jobs  ", "", ""),
        ("/jobs pause 2", "pause", "pause 2"),
        ("/Jobs@goclaw_bot  DELETE  Water-plants", "delete", "DELETE Water-plants"),
        ("/jobs run", "run", "run"),
        ("/jobs\npause 2", "", ""),
        ("/jobs pause\n2", "pause", "pause"),
    ],
)
def test_the_words_after_jobs_on_its_line_say_what_to_do_with_which(
    text: str, action: str, line: str
) -> None:
    """SPEC CMD-2, CMD-5."""
    command = parse_command(text, "goclaw_bot")
    assert isinstance(command, TypedCommand)
    assert (command.name, command.action, command.line) == ("jobs", action, line)
    assert our_command(text) == command


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("/timezone Europe/Berlin", "Europe/Berlin"),
        ("/TIMEZONE@goclaw_bot  New  York", "New York"),
        ("/timezone\nEurope/Berlin", ""),
    ],
)
def test_the_zone_is_what_follows_on_the_line_in_its_own_case(text: str, zone: str) -> None:
    """SPEC CMD-5: names of zones have capitals."""
    command = parse_command(text, "goclaw_bot")
    assert isinstance(command, TypedCommand)
    assert (command.name, command.line) == ("timezone", zone)


def test_the_whole_message_after_a_command_is_kept_beside_its_line() -> None:
    """SPEC CMD-2, CMD-5: nothing of an item of the checklist is lost."""
    text = "/Heartbeat@goclaw_bot  ADD every 2h:  the mail\nof Ann"
    line = "ADD every 2h: the mail"
    assert parse_command(text, "goclaw_bot") == TypedCommand("heartbeat", line, f"{line} of Ann")


def test_a_command_for_another_bot_is_not_for_us() -> None:
    """SPEC CMD-2."""
    assert parse_command("/stop@other_bot", "goclaw_bot") is None


def test_a_named_command_is_nobodys_while_our_name_is_unknown() -> None:
    """SPEC CMD-2."""
    assert parse_command("/stop@goclaw_bot", None) is None
    assert parse_command("/stop", None) == ONE


@pytest.mark.parametrize(
    ("text", "bot_name", "expected"),
    [
        ("/stop@other_bot", "goclaw_bot", True),
        ("/weather@other_bot Rome", "goclaw_bot", True),
        ("/stop@Goclaw_Bot", "goclaw_bot", False),
        ("/stop", "goclaw_bot", False),
        ("/stop@other_bot", None, False),
        ("ask @other_bot", "goclaw_bot", False),
        ("hello", "goclaw_bot", False),
    ],
)
def test_a_text_addresses_another_bot_only_by_a_command_with_its_name(
    text: str, bot_name: str | None, expected: bool
) -> None:
    """SPEC CMD-2."""
    assert addresses_another_bot(text, bot_name) is expected


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """SPEC CMD-2."""
    if parse_command(text, "goclaw_bot") is not None:
        assert text.strip().startswith("/")


@given(before=st.text(" \t\r\n"), after=st.text(), upper=st.booleans())
def test_blanks_before_and_text_after_never_hide_a_stop(
    before: str, after: str, upper: bool
) -> None:
    """SPEC CMD-2."""
    word = "/STOP" if upper else "/stop"
    assert parse_command(f"{before}{word} {after}") == ONE


def test_every_command_of_the_menu_works_and_says_what_it_does() -> None:
    """SPEC CMD-5."""
    for name, what in MENU:
        assert parse_command(f"/{name}") is not None
        assert what


def test_the_guide_explains_every_command_of_the_menu_and_no_other() -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/commands.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w.])/([a-z]+)", guide.split("## ")[0]))
    assert named == {name for name, _ in MENU} | {"reset"}


@pytest.mark.parametrize("text", ["/help", "/help@whoever", " /HELP@me now"])
def test_a_committed_command_is_ours_whatever_name_it_bears(text: str) -> None:
    """IO-2: after a restart it is carried out before the bot's name is known again."""
    command = our_command(text)
    assert isinstance(command, TypedCommand)
    assert command.name == "help"


def test_a_text_that_is_no_command_is_none_of_ours() -> None:
    assert our_command("help") is None
    assert our_command("/frobnicate") is None


# ---------------------------------------------------------------------------- buttons and edits


def test_a_stop_button_brings_the_run_that_it_stops_within_its_64_bytes() -> None:
    """SPEC CMD-2, CHAN-4."""
    run_id = RunId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")
    data = stop_data(run_id)
    assert len(data.encode()) <= 64
    pressed = replace(HELLO, press=data)
    assert command_of(pressed, None) == StopCommand(everything=False, run=run_id)
    assert our_command_of(pressed) == StopCommand(everything=False, run=run_id)


OCCURRENCE = OccurrenceId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")


def test_the_buttons_of_a_reminder_do_what_they_can_and_fit() -> None:
    """SPEC CRON-13."""
    rows = job_buttons(OCCURRENCE)
    pressed = [command_of(replace(HELLO, press=b.data), None) for row in rows for b in row]
    assert pressed == [
        JobButton(action, OCCURRENCE)
        for action in (
            JobAction.DONE,
            JobAction.AGAIN,
            JobAction.SNOOZE_10M,
            JobAction.SNOOZE_1H,
            JobAction.SNOOZE_TOMORROW,
        )
    ]
    assert set(JobAction) == {p.action for p in pressed if isinstance(p, JobButton)}
    assert all(len(button.data.encode()) <= 64 for row in rows for button in row)


@pytest.mark.parametrize(
    "data",
    [
        "job:",
        "job:done",
        "job:done:",
        "job:done:7",
        f"job:burn:{OCCURRENCE}",
        f"job:DONE:{OCCURRENCE}",
        f"job:done:{OCCURRENCE} ",
        f"job:done:{OCCURRENCE}\n",
        f"job::{OCCURRENCE}",
        f"job:done:{OCCURRENCE.replace('-', '')}",
        f"xjob:done:{OCCURRENCE}",
    ],
)
def test_a_button_that_we_have_not_made_does_nothing_to_jobs(data: str) -> None:
    """SPEC SEC-3: what a press brings can be made up."""
    assert command_of(replace(HELLO, press=data), None) is None


@given(st.text(max_size=64))
def test_any_press_can_be_read(data: str) -> None:
    command = command_of(replace(HELLO, press=data), None)
    assert command is None or data.startswith(("stop:", "job:"))


@pytest.mark.parametrize("data", ["", "done:7", "stopall", "/stop", "STOP:x"])
def test_another_button_is_no_command_whatever_it_says(data: str) -> None:
    pressed = replace(HELLO, text="/stopall", press=data)
    assert command_of(pressed, "goclaw_bot") is None
    assert our_command_of(pressed) is None


def test_a_typed_command_is_one_and_an_edit_is_none() -> None:
    """SPEC CHAN-6."""
    typed = replace(HELLO, text="/stop@goclaw_bot")
    assert command_of(typed, "goclaw_bot") == ONE
    assert command_of(typed, "other_bot") is None
    assert our_command_of(typed) == ONE
    assert command_of(replace(typed, edits="42:1"), "goclaw_bot") is None

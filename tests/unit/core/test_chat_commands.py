"""Commands that people type (SPEC CMD-2, CMD-5)."""

# ruff: noqa: RUF001  full-width marks mean themselves here
from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.chat_commands import (
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
    split_new,
    stop_data,
    unread_words,
)
from goclaw_py.core.command_text import visible_word
from goclaw_py.core.ids import OccurrenceId, RunId
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind, Sender, Target
from goclaw_py.testing.clock import START

ONE, ALL = StopCommand(everything=False), StopCommand(everything=True)
CHAT = Target("telegram", "default", "42")
HELLO = InboundMessage("42:1", CHAT, PeerKind.DIRECT, Sender("7"), "hello", START)
US = "goclaw_bot"
OCCURRENCE = OccurrenceId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")


SAME = ("start", "help", "status", "new", "queue", "jobs", "timezone", "heartbeat", "mute")


@pytest.mark.parametrize(
    ("word", "command"),
    [
        *(("stop", ONE), ("stopall", ALL), ("reset", TypedCommand("new"))),
        *((word, TypedCommand(word)) for word in SAME),
    ],
)
def test_every_command_is_recognised_by_its_word(word: str, command: Command) -> None:
    """SPEC CMD-1, CMD-5."""
    assert parse_command(f"/{word}") == command
    assert parse_command(f"/{word.upper()}") == command


@pytest.mark.parametrize(
    "text",
    [
        *("/stop", "/STOP", "/Stop", "  /stop  ", "\n\t/stop", "/stop now please", "/stop."),
        *("/stop\nand then this", "/stop\tnow", "/stop@Goclaw_Bot", "/stop@goclaw_bot please"),
        *(" /sToP@GOCLAW_BOT\n", "/stop!!!", "/stop, please", "/STOP please", "/stop@goclaw_bot!"),
    ],
)
def test_stop_is_recognised_in_any_case_with_blanks_and_text_after_it(text: str) -> None:
    assert parse_command(text, US) == ONE


@pytest.mark.parametrize(
    "text",
    [
        *("", "stop", "please /stop", "do not\n/stop", "/ stop", "//stop", "/sttop", "/stop.txt"),
        *("/stop,please", "/stop/all", "/stop_all", "/stop2", "/stop@", "/stop@goclaw-bot"),
        *("/unknown", "/\N{LATIN SMALL LETTER LONG S}top", "/stop@other_bot"),
    ],
)
def test_what_only_looks_like_stop_belongs_to_the_agent(text: str) -> None:
    assert parse_command(text, US) is None


@pytest.mark.parametrize(
    "text",
    [
        *("stop", "STOP!!", " Halt. ", "cancel", "Abbrechen", "arre\u0302te", "СТОП", "停止。"),
        *("¡para!", "«stop»", '"Stop"', "(stop)", "stop 🛑", "✋🏽 stop ✋🏽", "**stop**", "रुको!"),
        *("İPTAL", "\u0130ptal", "停！！", "قف؟", "stop…"),
    ],
)
def test_a_bare_word_in_many_languages_means_stop(text: str) -> None:
    message = replace(HELLO, text=text)
    assert is_stop_word(message)
    assert command_of(message, None) is None  # the gateway knows whether something runs
    assert our_command_of(message) == ONE


@pytest.mark.parametrize(
    "text",
    ["/стоп", "/parar", "/cancel", "/STOPP", "/停止", "/arre\u0302te!", "/रुको", "/قف", "/İptal"],
)
def test_a_stop_word_with_a_slash_is_stop(text: str) -> None:
    assert parse_command(text, US) == ONE
    assert parse_command(f"{text} please", US) == ONE
    assert parse_command(f"{text}x", US) is None


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("/stop，谢谢", "谢谢"), ("／停止。谢谢", "谢谢"), ("/stop！please", "please"),
        ("/stop、、 x", "x"), ("/إلغاء،شكرا", "شكرا"), ("/stop！！", ""),
    ],
)  # fmt: skip
def test_scripts_without_blanks_write_marks_behind_commands(text: str, unread: str) -> None:
    """SPEC CMD-2."""
    assert parse_command(text, US) == ONE
    assert unread_words(replace(HELLO, text=text)) == unread
    (new, rest) = split_new(replace(HELLO, text="/new：首都？"), US)
    assert (new.text, rest.text) == ("/new：", "首都？")


@pytest.mark.parametrize("text", ["stop it", "🛑", "", "!", "停止吗", "st op", "1. stop", "stop 2"])
def test_a_text_with_more_than_a_stop_word_is_the_agents(text: str) -> None:
    assert not is_stop_word(replace(HELLO, text=text))


INVISIBLE = (
    *("\u200b", "\u200d", "\u2060", "\ufeff", "\u200e", "\u202a\u202c", "\u00ad", "\ufe0f"),
    *("\u180e", "\u2063", "\U000e0001", "\u061c", "\u3164", "\u2800", "\x07"),
)


@pytest.mark.parametrize("unseen", INVISIBLE)
def test_what_is_invisible_hides_no_command(unseen: str) -> None:
    """SPEC CMD-2."""
    for slash, at in (("/", "@"), ("\uff0f", "\uff20")):
        for text in (
            f"{unseen}{slash}stop",
            f" {unseen} {slash}stop{unseen}",
            f"{slash}{unseen}stop",
            f"{slash}st{unseen}op {unseen}",
            f"{slash}stop{unseen}{at}{unseen}goclaw{unseen}_bot{unseen}!",
            f"{slash}stop{unseen}\nplease",
        ):
            assert parse_command(text, US) == ONE, ascii(text)
            assert not addresses_another_bot(text, US)
        assert addresses_another_bot(f"{unseen}{slash}stop{at}{unseen}other_bot", US)
        queue = parse_command(f"{slash}queue{unseen} st{unseen}eer{unseen}", US)
        assert isinstance(queue, TypedCommand)
        assert (queue.action, queue.line) == ("steer", "steer")
    assert is_stop_word(replace(HELLO, text=f"{unseen}st{unseen}op{unseen}!{unseen}"))
    assert command_of(replace(HELLO, text=f"/stpo{unseen}"), US) == Misspelt("stop")


def test_every_format_character_of_unicode_is_invisible() -> None:
    formats = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) == "Cf"]
    assert formats
    assert all(visible_word(char) == "" for char in formats)


def test_the_keyboard_of_full_width_letters_types_commands_too() -> None:
    text = "\uff0f\uff53\uff54\uff4f\uff50"
    assert parse_command(text, US) == ONE
    assert parse_command(f"{text}\uff01", US) == ONE
    assert is_stop_word(replace(HELLO, text=text[1:]))


def test_an_item_of_the_checklist_keeps_what_joins_its_characters() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    command = parse_command(f"/heartbeat\u200b add call {family}", US)
    assert isinstance(command, TypedCommand)
    assert command.message == f"add call {family}"


def test_what_is_behind_new_is_a_message_of_its_own() -> None:
    """SPEC CMD-5."""
    photo = Attachment(FileKind.PHOTO, "1")
    whole = replace(HELLO, text="/NEW@goclaw_bot \u200b what\nis it?", cut=True, quote="that")
    new, first = split_new(whole, US)
    assert command_of(new, US) == TypedCommand("new")
    assert (first.text.strip("\u200b "), first.cut, first.quote) == ("what\nis it?", True, "that")
    assert (new.external_id, first.external_id) == ("42:1:new", "42:1")
    assert not new.cut
    assert unread_words(new) == ""
    seen = replace(HELLO, text="/reset", attachments=(photo,))
    assert [part.attachments for part in split_new(seen, None)] == [(), (photo,)]
    for text in ("/new", "/new \u200b", "/stop x", "hello /new x", "/new@other_bot x"):
        alone = replace(HELLO, text=text)
        assert split_new(alone, US) == (alone,)
    edit = replace(whole, edits="42:1")
    assert [part.text for part in split_new(edit, US)] == [first.text]


@pytest.mark.parametrize(
    ("formatted", "rest"),
    [
        ("/new read [this](https://e.org)", "read [this](https://e.org)"),
        ("**/new read this**", ""),
        ("", ""),
    ],
)
def test_what_is_behind_new_keeps_its_formatting(formatted: str, rest: str) -> None:
    """SPEC CHAN-6: and the command gets none of it."""
    new, first = split_new(replace(HELLO, text="/new read this", formatted=formatted), US)
    assert (new.text, new.markdown) == ("/new", "/new")
    assert (first.text, first.formatted) == ("read this", rest)


def test_the_word_in_anything_longer_means_nothing() -> None:
    stop = replace(HELLO, text="stop")
    for text in ("stop the music", "unstoppable", "!", "", "stop" + "!" * 100):
        assert not is_stop_word(replace(stop, text=text))
    assert not is_stop_word(replace(stop, addressed=False))
    assert not is_stop_word(replace(stop, edits="42:0"))
    assert not is_stop_word(replace(stop, attachments=(Attachment(FileKind.PHOTO, "1"),)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *(("/stpo", "stop"), ("/STP", "stop"), ("/sttop!", "stop"), ("/stopal", "stopall")),
        *(("/hlep", "help"), ("/job", "jobs"), ("/stats", "status")),
        ("/hartbeat@goclaw_bot", "heartbeat"),
    ],
)
def test_what_is_nearly_a_command_is_asked_about(text: str, meant: str) -> None:
    message = replace(HELLO, text=text)
    assert command_of(message, US) == our_command_of(message) == Misspelt(meant)
    assert command_of(replace(message, addressed=False), US) is None
    assert command_of(replace(message, text=f"{text} now"), US) is None


@pytest.mark.parametrize("text", ["/shop", "/news", "/top", "/weather", "/etc/stpo", "stpo", "/s"])
def test_other_words_with_a_slash_belong_to_the_agent(text: str) -> None:
    assert command_of(replace(HELLO, text=text), None) is None


@pytest.mark.parametrize(
    ("text", "action", "line"),
    [
        ("/queue", "", ""),
        ("/queue   ", "", ""),
        ("/queue steer", "steer", "steer"),
        ("/QUEUE@goclaw_bot  Steer please", "steer", "Steer please"),
        ("/queue\tcollect\nand more", "collect", "collect"),
        ("/queue\ncollect", "", ""),
        ("/queue \n collect", "", ""),
        ("/jobs", "", ""),
        ("/jobs  ", "", ""),
        ("/jobs pause 2", "pause", "pause 2"),
        ("/Jobs@goclaw_bot  DELETE  Water-plants", "delete", "DELETE Water-plants"),
        ("/jobs run", "run", "run"),
        ("/jobs\npause 2", "", ""),
        ("/jobs pause\n2", "pause", "pause"),
        # Names of zones have capitals.
        ("/timezone Europe/Berlin", "europe/berlin", "Europe/Berlin"),
        ("/TIMEZONE@goclaw_bot  New  York", "new", "New York"),
        ("/timezone\nEurope/Berlin", "", ""),
    ],
)
def test_the_words_on_the_line_say_what_to_do(text: str, action: str, line: str) -> None:
    """SPEC CMD-2, CMD-5: text on the next line is only text."""
    command = parse_command(text, US)
    assert isinstance(command, TypedCommand)
    assert command.name in text.lower()
    assert (command.action, command.line) == (action, line)
    assert our_command(text) == command


def test_the_whole_message_after_a_command_is_kept_beside_its_line() -> None:
    """SPEC CMD-2, CMD-5: nothing of an item of the checklist is lost."""
    text = "/Heartbeat@goclaw_bot  ADD every 2h:  the mail\nof Ann"
    line = "ADD every 2h: the mail"
    assert parse_command(text, US) == TypedCommand("heartbeat", line, f"{line} of Ann")


def test_a_named_command_is_nobodys_while_our_name_is_unknown() -> None:
    assert parse_command("/stop@goclaw_bot", None) is None
    assert parse_command("/stop", None) == ONE


def test_a_text_addresses_another_bot_only_by_a_command_with_its_name() -> None:
    for text in ("/stop@other_bot", "/weather@other_bot Rome"):
        assert addresses_another_bot(text, US)
    for text in ("/stop@Goclaw_Bot", "/stop", "ask @other_bot", "hello"):
        assert not addresses_another_bot(text, US)
    assert not addresses_another_bot("/stop@other_bot", None)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    if parse_command(text, US) is not None:
        assert text.strip().startswith("/")


@given(before=st.text(" \t\r\n"), after=st.text(), word=st.sampled_from(["/stop", "/STOP"]))
def test_blanks_before_and_text_after_never_hide_a_stop(before: str, after: str, word: str) -> None:
    assert parse_command(f"{before}{word} {after}") == ONE


def test_every_command_of_the_menu_works_and_says_what_it_does() -> None:
    for name, what in MENU:
        assert parse_command(f"/{name}") is not None
        assert what


def test_a_committed_command_is_ours_whatever_name_it_bears() -> None:
    """IO-2: after a restart it is carried out before the bot's name is known again."""
    for text in ("/help", "/help@whoever", " /HELP@me now"):
        command = our_command(text)
        assert isinstance(command, TypedCommand)
        assert command.name == "help"
    for text in ("help", "/frobnicate"):
        assert our_command(text) is None


def test_a_stop_button_brings_the_run_that_it_stops_within_its_64_bytes() -> None:
    """SPEC CMD-2, CHAN-4."""
    run_id = RunId(OCCURRENCE)
    data = stop_data(run_id)
    assert len(data.encode()) <= 64
    pressed = replace(HELLO, press=data)
    stop = StopCommand(everything=False, run=run_id)
    assert command_of(pressed, None) == our_command_of(pressed) == stop


def test_the_buttons_of_a_reminder_do_what_they_can_and_fit() -> None:
    """SPEC CRON-13."""
    buttons = [button for row in job_buttons(OCCURRENCE) for button in row]
    pressed = [command_of(replace(HELLO, press=button.data), None) for button in buttons]
    snoozes = JobAction.SNOOZE_10M, JobAction.SNOOZE_1H, JobAction.SNOOZE_TOMORROW
    actions = [JobAction.DONE, JobAction.AGAIN, *snoozes]
    assert pressed == [JobButton(action, OCCURRENCE) for action in actions]
    assert set(JobAction) == set(actions)
    assert all(len(button.data.encode()) <= 64 for button in buttons)


@pytest.mark.parametrize(
    "data",
    [
        *("", "done:7", "stopall", "/stop", "STOP:x", "job:", "job:done", "job:done:"),
        *("job:done:7", f"job:burn:{OCCURRENCE}", f"job:DONE:{OCCURRENCE}"),
        *(f"job:done:{OCCURRENCE} ", f"job:done:{OCCURRENCE}\n", f"job::{OCCURRENCE}"),
        *(f"job:done:{OCCURRENCE.replace('-', '')}", f"xjob:done:{OCCURRENCE}"),
    ],
)
def test_a_button_that_we_have_not_made_is_no_command_whatever_it_says(data: str) -> None:
    """SPEC SEC-3: what a press brings can be made up."""
    pressed = replace(HELLO, text="/stopall", press=data)
    assert command_of(pressed, US) is None
    assert our_command_of(pressed) is None


@given(st.text(max_size=64))
def test_any_press_can_be_read(data: str) -> None:
    command = command_of(replace(HELLO, press=data), None)
    assert command is None or data.startswith(("stop:", "job:"))


def test_a_typed_command_is_one_and_an_edit_is_none() -> None:
    """SPEC CHAN-6."""
    typed = replace(HELLO, text="/stop@goclaw_bot")
    assert command_of(typed, US) == our_command_of(typed) == ONE
    assert command_of(typed, "other_bot") is None
    assert command_of(replace(typed, edits="42:1"), US) is None

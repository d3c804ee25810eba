"""``channels.telegram.inbound.address``: whom a message in a group is for."""

from __future__ import annotations

import re
import time

import pytest

from channels.telegram.client import Bot
from goclaw_py.core.text import utf16_len
from tests.unit.channels.telegram.updates import (
    BEN,
    OTHER_BOT,
    OURSELVES,
    PHOTO,
    TEAM,
    Json,
    answer,
    message,
    parsed,
    said,
    said_in,
)


def mention(text: str, what: str = "@GoclawTestBot") -> Json:
    """The entity for ``what`` in ``text``, with offsets as the server counts them."""
    offset = utf16_len(text[: text.index(what)])
    return {"type": "mention", "offset": offset, "length": utf16_len(what)}


def heard(text: str, *entities: Json, **more: object) -> bool:
    if entities:
        more["entities"] = list(entities)
    return parsed(said_in(TEAM, text, **more)).addressed


@pytest.mark.parametrize(
    "text",
    [
        "ask @GoclawTestBot about it",
        "ask @goclawtestBOT about it",
        "😀😀 ask @GoclawTestBot about it",
        "👨‍👩‍👧 é @GoclawTestBot 😀",
        "you,@GoclawTestBot",
        "你好@GoclawTestBot你好",
    ],
)
def test_a_mention_anywhere_addresses_the_bot(text: str) -> None:
    """SPEC CHAN-5: offsets are counted in UTF-16."""
    found = text[text.lower().index("@goclaw") :][:14]
    assert heard(text, mention(text, found))


@pytest.mark.parametrize(
    "text",
    [
        "GoclawTestBot, hello",
        "goclawtestbot hello",
        " \nGoclawTestBot",
        "@GoclawTestBot hello",
        "@GoclawTestBot你好",
    ],
)
def test_a_text_that_begins_with_the_name_addresses_the_bot(text: str) -> None:
    assert heard(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ask @GoclawTestBot2 about it", "@GoclawTestBot2"),
        ("ask @GoclawTestBo about it", "@GoclawTestBo"),
        ("ask @GoclawTestBat about it", "@GoclawTestBat"),
        ("@GoclawTestBot2 hello", "@GoclawTestBot2"),
        ("@GoclawTestBot_x hello", "@GoclawTestBot_x"),
        ("GoclawTestBots are many", "GoclawTestBots"),
        ("what is GoclawTestBot", "GoclawTestBot"),
    ],
)
def test_a_name_of_which_ours_is_a_part_is_another_name(text: str, name: str) -> None:
    assert not heard(text, mention(text, name))
    assert not heard(text)


def test_a_name_that_telegram_does_not_call_a_mention_is_none() -> None:
    """An address of electronic mail, a part of a link."""
    assert not heard("write to ann@GoclawTestBot please")
    assert not heard("see @GoclawTestBot", {"type": "code", "offset": 4, "length": 14})


def test_a_look_alike_of_the_name_is_another_name() -> None:
    kelvin = "ask @\u212aoclaw"
    found = parsed(
        said_in(TEAM, kelvin, entities=[mention(kelvin, "@\u212aoclaw")]), bot=Bot(4242, "Koclaw")
    )
    assert not found.addressed


def test_a_mention_by_id_addresses_the_bot() -> None:
    def by_id(number: object) -> Json:
        return {"type": "text_mention", "offset": 0, "length": 6, "user": {"id": number}}

    assert heard("Goclaw hello", by_id(4242))
    assert not heard("Goclaw hello", by_id(4243))
    assert not heard("Goclaw hello", {"type": "text_mention", "offset": 0, "length": 6})


def test_a_mention_in_a_caption_addresses_the_bot() -> None:
    caption = "what does @GoclawTestBot see"
    raw = said_in(TEAM, None, photo=PHOTO, caption=caption, caption_entities=[mention(caption)])
    assert parsed(raw).addressed
    assert not parsed(said_in(TEAM, None, photo=PHOTO, caption=caption)).addressed


def test_a_reply_to_the_bot_addresses_it_and_a_reply_to_others_does_not() -> None:
    assert heard("why?", reply_to_message=answer(chat=TEAM))
    assert not heard("why?", reply_to_message=message("x", message_id=9, chat=TEAM))
    assert not heard("why?", reply_to_message=answer(**{"from": OTHER_BOT}))
    assert not heard("why?", reply_to_message=answer(**{"from": "x"}))


@pytest.mark.parametrize(
    ("text", "addressed"),
    [
        ("/stop", True),
        ("/STOPALL now", True),
        ("/queue collect", True),
        ("/stop@GoclawTestBot", True),
        ("/stop@GOCLAWTESTBOT now", True),
        ("/weather@GoclawTestBot Oslo", True),
        ("/stop@GoclawTestBot2", False),
        ("/stop@PollBot", False),
        ("/poll_2@PollBot", False),
        ("/weather Oslo", False),
        ("/", False),
        ("please /stop", False),
    ],
)
def test_a_command_is_for_whom_it_names_or_for_who_knows_it(text: str, *, addressed: bool) -> None:
    """SPEC CMD-2."""
    assert heard(text) is addressed


def test_a_command_for_another_bot_is_not_ours_even_as_a_reply_to_us() -> None:
    assert not heard("/stop@PollBot", reply_to_message=answer(chat=TEAM))


POLLBOT: Json = {"type": "text_mention", "offset": 0, "length": 4, "user": OTHER_BOT}
US: Json = {**POLLBOT, "user": OURSELVES}


@pytest.mark.parametrize(
    ("text", "entities", "addressed", "kept"),
    [
        ("@PollBot and you?", [], False, "@PollBot and you?"),
        ("and you, @PollBot?", [], False, "and you, @PollBot?"),
        ("and you @pollbot", [], False, "and you @pollbot"),
        ("Poll and you?", [POLLBOT], False, "Poll and you?"),
        ("Goclaw or @PollBot?", [{**US, "length": 6}], True, "Goclaw or @PollBot?"),
        ("@GoclawTestBot ask @PollBot", [], True, "@GoclawTestBot ask @PollBot"),
        ("@PollBot or @GoclawTestBot", [], True, "@PollBot or @GoclawTestBot"),
        ("@GoclawTestBot2 and you?", [], True, "@GoclawTestBot2 and you?"),
        ("what does @ben say?", [], True, "what does @ben say?"),
        ("who wrote ann@pollbot", [], True, "who wrote ann@pollbot"),
        ("see https://t.me/@pollbot", [], True, "see https://t.me/@pollbot"),
        ("@robots and you?", [], True, "@robots and you?"),
        ("/status", [], True, "/status"),
        ("@GoclawTestBot /weather @PollBot", [], True, "@GoclawTestBot /weather @PollBot"),
        ("@GoclawTestBot /status @PollBot", [], True, "/status @PollBot"),
    ],
)
def test_a_reply_to_us_that_names_only_another_bot_is_not_ours(
    text: str, entities: list[Json], *, addressed: bool, kept: str
) -> None:
    """SPEC CHAN-5: if both are named, the agent reads both names. Also in captions."""
    reply = {"reply_to_message": answer(chat=TEAM)}
    named = [mention(text)] if re.search(r"@GoclawTestBot\b", text) else []
    found = parsed(said_in(TEAM, text, entities=[*named, *entities], **reply))
    assert (found.addressed, found.text) == (addressed, kept)
    captioned = {"photo": PHOTO, "caption": text, "caption_entities": [*named, *entities]}
    found = parsed(said_in(TEAM, None, **captioned, **reply))
    assert (found.addressed, found.text) == (addressed, kept)
    assert parsed(said(text, entities=[*named, *entities])).addressed


def test_in_a_private_chat_everything_is_for_the_bot() -> None:
    for text in ("hello", "@PollBot hello", "/stop@PollBot"):
        assert parsed(said(text)).addressed


def test_the_rest_of_a_group_is_not_for_the_bot() -> None:
    found = parsed(said_in(TEAM, "dinner?", **{"from": BEN}))
    assert (found.addressed, found.text) == (False, "dinner?")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("@GoclawTestBot hello", "hello"),
        ("  @goclawtestbot   hello", "hello"),
        ("@GoclawTestBot, hello", "hello"),
        ("@GoclawTestBot: hello", "hello"),
        ("@GoclawTestBot!\nhello", "hello"),
        ("@GoclawTestBot :)", ":)"),
        ("@GoclawTestBot .env is missing", ".env is missing"),
        ("@GoclawTestBot你好", "你好"),
        ("@GoclawTestBot /stop", "/stop"),
        ("@GoclawTestBot /weather @GoclawTestBot", "/weather @GoclawTestBot"),
        ("hello @GoclawTestBot", "hello"),
        ("hello, @GoclawTestBot \n", "hello"),
        ("hello\n@GoclawTestBot", "hello"),
        ("@GoclawTestBot hello @GoclawTestBot", "hello"),
    ],
)
def test_a_name_that_only_calls_the_bot_is_left_out(text: str, rest: str) -> None:
    assert parsed(said_in(TEAM, text)).text == rest
    assert parsed(said(text)).text == rest


@pytest.mark.parametrize(
    "text",
    [
        "ask @GoclawTestBot about it", "who made (@GoclawTestBot)", "who is @GoclawTestBot?",
        "write to ann@GoclawTestBot", "@GoclawTestBot2 hello", "hello @GoclawTestBot2",
        "hello @OurGoclawTestBot", "GoclawTestBot, hello", "/stop @GoclawTestBot",
        "/stop@GoclawTestBot", "/weather @GoclawTestBot", " hello ",
    ],
)  # fmt: skip
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert parsed(said_in(TEAM, text)).text == text


@pytest.mark.parametrize("unseen", ["\u200b", "\u2060", "\ufeff", "\u200e", "\ufe0f", "\u00ad"])
@pytest.mark.parametrize("at", ["@", "\uff20"])
def test_what_is_invisible_does_not_hide_the_name(unseen: str, at: str) -> None:
    """SPEC CMD-2, CHAN-5."""
    name = f"{unseen}{at}{unseen}Goclaw{unseen}TestBot{unseen}"
    for text in (f"{name} hello", f" {name},{unseen} hello", f"{name}\uff0c hello"):
        found = parsed(said_in(TEAM, text))
        assert (found.text, found.addressed) == ("hello", True), ascii(text)
    assert parsed(said(f"hello {name}")).text == "hello"
    assert parsed(said(f"hello, {name} {unseen}")).text == "hello"
    assert parsed(said(f"{name} /stop")).text == "/stop"
    assert heard(f"{unseen}\uff0fstop{unseen}{at}{unseen}GoclawTestBot")
    assert not heard(f"{unseen}/stop{at}PollBot", reply_to_message=answer(chat=TEAM))


def test_a_text_that_is_only_the_name_stays_unless_something_came_with_it() -> None:
    assert parsed(said_in(TEAM, "@GoclawTestBot")).text == "@GoclawTestBot"
    assert parsed(said_in(TEAM, "@GoclawTestBot,")).text == "@GoclawTestBot,"
    replied = message("the question", message_id=9, chat=TEAM)
    asked = parsed(said_in(TEAM, "@GoclawTestBot", reply_to_message=replied))
    assert (asked.text, asked.quote, asked.addressed) == ("", "the question", True)
    shown = parsed(said_in(TEAM, None, photo=PHOTO, caption="@GoclawTestBot"))
    assert (shown.text, len(shown.attachments), shown.addressed) == ("", 1, True)


@pytest.mark.parametrize(
    "entities",
    [
        "x",
        {},
        [5, None, "x", []],
        [{"type": "mention"}],
        [{"type": ["mention"], "offset": 4, "length": 14}],
        [{"type": "mention", "offset": "4", "length": 14}],
        [{"type": "mention", "offset": 4.0, "length": 14}],
        [{"type": "mention", "offset": -14, "length": 14}],
        [{"type": "mention", "offset": 10**5000, "length": 14}],
        [{"type": "mention", "offset": 1 << 62, "length": 14}],
        [{"type": "mention", "offset": 4, "length": 10**5000}],
        [{"type": "text_mention", "user": 5}],
    ],
)
def test_broken_entities_do_not_cost_the_message(entities: object) -> None:
    found = parsed(said_in(TEAM, "ask @GoclawTestBot", entities=entities))
    assert (found.text, found.addressed) == ("ask", False)


def test_an_entity_that_begins_inside_a_character_is_no_mention() -> None:
    assert not heard("😀@GoclawTestBot x", {"type": "mention", "offset": 1, "length": 14})
    assert heard("😀@GoclawTestBot x", {"type": "mention", "offset": 2, "length": 14})


def test_many_entities_and_endless_texts_take_a_time_in_proportion() -> None:
    """Each of these took minutes if its time grew with the square."""
    began = time.perf_counter()
    long = "😀" * 500_000
    many: Json = {"type": "mention", "offset": 100, "length": 14}
    wide: Json = {"type": "mention", "offset": 0, "length": 1_000_000}
    assert not heard(long, *[many, wide] * 10_000)
    for text in (" " * 500_000 + "x", ", " * 250_000 + "x", "@GoclawTestBot" + "!" * 500_000 + "x"):
        parsed(said_in(TEAM, text))
        parsed(said_in(TEAM, text + "@GoclawTestBot"))
    parsed(said_in(TEAM, "/" + "a" * 500_000 + "!"))
    parsed(said_in(TEAM, "@GoclawTestBo" * 50_000))
    assert time.perf_counter() - began < 60

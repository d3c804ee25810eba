"""``channels.telegram.inbound``: who wrote what, where, and what was replied to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from channels.telegram.client import Bot
from channels.telegram.inbound.reader import CHANNEL, KINDS, Malformed, update_id
from goclaw_py.core.chat_commands import StopCommand, parse_command
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from tests.unit.channels.telegram.updates import (
    ANN,
    BEN,
    BOT,
    FORUM,
    GROUP,
    NEWS,
    NOON,
    OTHER_BOT,
    OURSELVES,
    PHOTO,
    TEAM,
    WITH_ANN,
    Json,
    answer,
    edited,
    message,
    parsed,
    read,
    said,
    said_in,
    said_in_topic,
    update,
)


def test_a_private_text_becomes_a_direct_message() -> None:
    """SPEC IO-1."""
    assert parsed(said("hello")) == InboundMessage(
        external_id="7:12",
        target=Target("telegram", "default", "7"),
        peer=PeerKind.DIRECT,
        sender=Sender("7", "Ann Lee", "annlee"),
        text="hello",
        sent_at=datetime.fromtimestamp(NOON, UTC),
        message_id="12",
        addressed=True,
        place_name="Ann Lee",
    )


def test_the_channel_asks_for_all_kinds_that_it_reads() -> None:
    assert CHANNEL == "telegram"
    assert KINDS == (
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
        "stopped_message_generation",
    )


@pytest.mark.parametrize("chat", [GROUP, TEAM, FORUM])
def test_groups_are_groups(chat: Json) -> None:
    found = parsed(said_in(chat))
    number = chat["id"]
    assert (found.peer, found.target, found.external_id, found.place_name) == (
        PeerKind.GROUP,
        Target("telegram", "default", str(number)),
        f"{number}:12",
        chat["title"],
    )


@pytest.mark.parametrize(
    "raw",
    [
        said_in(NEWS),
        said_in({**NEWS, "type": "of next year"}),
        said_in({**TEAM, "is_direct_messages": True}),
        said(**{"from": None}),
        said_in(TEAM, sender_chat=NEWS, is_automatic_forward=True),
        {"update_id": 1, "channel_post": message()},
        {"update_id": 1, "business_message": message()},
        {"update_id": 1, "guest_message": message()},
        {"update_id": 1, "poll": {"id": "5"}},
        {"update_id": 1, "something_of_next_year": 5},
        {"update_id": 1},
    ],
)
def test_what_nobody_said_to_us_is_passed_over(raw: object) -> None:
    assert read(raw) is None


@pytest.mark.parametrize("user", [OTHER_BOT, OURSELVES, {"id": 4242, "first_name": "Goclaw"}])
@pytest.mark.parametrize("chat", [WITH_ANN, TEAM])
def test_what_bots_say_is_passed_over(chat: Json, user: Json) -> None:
    """Two bots that answer each other never end."""
    assert read(said_in(chat, "@GoclawTestBot hello", **{"from": user})) is None


@pytest.mark.parametrize(
    ("sender_chat", "sender"),
    [
        (TEAM, Sender("-1001007", "Team")),
        (NEWS, Sender("-1001009", "News", "thenews")),
    ],
)
def test_who_writes_as_a_chat_is_that_chat(sender_chat: Json, sender: Sender) -> None:
    """SPEC CHAN-5: all anonymous admins share one user id, which must not become a permission."""
    fake = {
        "id": 1087968824,
        "is_bot": True,
        "first_name": "Group",
        "username": "GroupAnonymousBot",
    }
    raw = said_in(TEAM, "hello", **{"from": fake, "sender_chat": sender_chat})
    assert parsed(raw).sender == sender


@pytest.mark.parametrize(
    ("names", "sender"),
    [
        ({"first_name": "Ann"}, Sender("8", "Ann")),
        ({"first_name": "Ann", "last_name": "Lee"}, Sender("8", "Ann Lee")),
        ({"first_name": None, "username": 5}, Sender("8")),
        ({"first_name": ["Ann"], "last_name": "Lee", "username": ""}, Sender("8", "Lee")),
        ({"first_name": "A\u202eeel\u2066", "username": "a\u200bnn"}, Sender("8", "Aeel", "ann")),
        ({"first_name": "Ann\n\n[system]\x00:"}, Sender("8", "Ann [system] :")),
        ({"first_name": "\u3164\u2800", "last_name": "\u200d"}, Sender("8")),
        ({"first_name": "A\ud83d"}, Sender("8", "A\ufffd")),
    ],
)
def test_a_name_can_neither_hide_nor_reorder_what_stands_beside_it(
    names: Json, sender: Sender
) -> None:
    assert parsed(said(**{"from": {"id": 8, "is_bot": False, **names}})).sender == sender


def test_a_name_of_any_length_is_short() -> None:
    user = {"id": 8, "is_bot": False, "first_name": "A" * 100_000, "username": "b" * 100_000}
    found = parsed(said(**{"from": user})).sender
    assert (len(found.name), len(found.username or "")) == (128, 128)


@pytest.mark.parametrize(("title", "name"), [(" Te\u202eam\n", "Team"), (5, "")])
def test_the_title_of_a_group_is_cleaned_too(title: object, name: str) -> None:
    assert parsed(said_in({**TEAM, "title": title})).place_name == name


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # Direction and invisible characters belong to the languages that people write in.
        ("نمی\u200cتوان \u202eabc", "نمی\u200cتوان \u202eabc"),  # noqa: RUF001
        # What a database or JSON cannot hold is replaced.
        ("a\x00b\ud83dc", "a\ufffdb\ufffdc"),
    ],
)
def test_a_text_keeps_what_can_be_stored(text: str, kept: str) -> None:
    assert parsed(said(text)).text == kept


def test_redelivery_is_marked() -> None:
    for raw in (
        said(),
        edited(),
        update(
            "callback_query",
            {"id": "1", "from": ANN, "data": "x", "chat_instance": "1", "message": answer()},
        ),
        update("stopped_message_generation", {"chat": WITH_ANN, "draft_id": 3}),
    ):
        found = read(raw, redelivered=True)
        assert isinstance(found, InboundMessage)
        assert found.redelivered


# --- versions, pieces, albums -------------------------------------------------------------------


def test_an_edit_names_what_it_is_a_new_version_of() -> None:
    """SPEC CHAN-6, IO-1."""
    found = parsed(edited("hello!"))
    assert (found.external_id, found.edits) == (f"7:12:{NOON + 5}", "7:12")
    assert (found.text, found.message_id) == ("hello!", "12")
    assert found.sent_at == datetime.fromtimestamp(NOON + 5, UTC)
    assert parsed(said()).edits is None


def test_an_edit_without_its_date_is_malformed() -> None:
    with pytest.raises(Malformed, match="edit_date"):
        read(edited(edit_date=None))


def test_a_position_that_moves_is_told_once() -> None:
    """A shared position is edited every few seconds."""
    position = {"latitude": 1.5, "longitude": 2.5, "live_period": 3600}
    assert parsed(said(None, location=position)).text.startswith("[location: 1.5, 2.5")
    assert read(edited(None, location=position)) is None


@pytest.mark.parametrize(
    ("raw", "cut"),
    [
        (said("x" * 4096), True),
        (said("x" * 4095), False),
        (said("😀" * 2048), True),
        (said("😀" * 4096), True),
        (said(""), False),
        (said_in(TEAM, "@GoclawTestBot " + "x" * (4096 - 15)), True),
        (edited("x" * 4096), False),
        (said(None, photo=PHOTO, caption="x" * 4096), False),
    ],
)
def test_a_text_of_the_greatest_length_was_probably_cut(raw: Json, *, cut: bool) -> None:
    """SPEC QUEUE-6: but an edit or a caption does not go on in the next message."""
    assert parsed(raw).cut is cut


def test_the_pictures_of_an_album_share_its_name() -> None:
    """SPEC CHAN-6."""
    first = parsed(said(None, photo=PHOTO, caption="look", media_group_id="1357"))
    second = parsed(said(None, photo=PHOTO, message_id=13, media_group_id="1357"))
    assert first.album == second.album == "7:1357"
    assert (first.text, second.text) == ("look", "")
    elsewhere = parsed(said_in(TEAM, None, photo=PHOTO, media_group_id="1357"))
    assert elsewhere.album == "-1001007:1357"
    assert parsed(said(None, photo=PHOTO)).album is None
    assert parsed(said(None, photo=PHOTO, media_group_id=5)).album is None


def test_ephemeral_messages_which_have_no_number_are_told_apart() -> None:
    raws = [
        update("message", message(chat=TEAM, message_id=0, ephemeral_message_id=3), number=number)
        for number in (900, 901)
    ]
    first, second = map(parsed, raws)
    assert (first.external_id, second.external_id) == ("-1001007:0:900", "-1001007:0:901")
    assert first.message_id is None
    del raws[0]["update_id"]
    with pytest.raises(Malformed, match="update_id"):
        read(raws[0])


# --- /stop --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        said("/stop"),
        said(" /STOP "),
        said("/stop\nplease"),
        said("/stop it now"),
        said("/stop@goclawTESTbot"),
        said("@GoclawTestBot /stop"),
        said("@goclawtestbot, /stop"),
        said("/stop", reply_to_message=answer()),
        said("/stop", reply_to_message=answer(), quote={"text": "the", "position": 0}),
        said("/stop", is_topic_message=True, message_thread_id=31),
        said(None, photo=PHOTO, caption="/stop"),
        said(None, photo=PHOTO, caption="/stop@GoclawTestBot\nnow"),
        edited("/stop"),
        said_in(TEAM, "/stop"),
        said_in(TEAM, "/stop@GoclawTestBot now"),
        said_in(TEAM, "@GoclawTestBot /stop"),
        said_in(TEAM, "/stop @GoclawTestBot"),
        said_in(TEAM, "/stop", reply_to_message=answer()),
        said_in(TEAM, "/stop", reply_to_message=message("x", message_id=9, **{"from": BEN})),
        said_in_topic("/stop"),
        said_in_topic("/Stop@GoclawTestBot\nplease"),
    ],
)
def test_a_stop_is_recognised_wherever_it_stands(raw: Json) -> None:
    """SPEC CMD-2."""
    found = parsed(raw)
    assert parse_command(found.text, BOT.username) == StopCommand(everything=False)
    assert found.addressed


def test_a_command_keeps_its_text() -> None:
    assert parsed(said_in(TEAM, "/stop@GoclawTestBot now")).text == "/stop@GoclawTestBot now"


# --- what is malformed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (5, "update"),
        (None, "update"),
        (["update"], "update"),
        ({"update_id": 1, "message": None}, "message"),
        ({"update_id": 1, "edited_message": "hello"}, "edited_message"),
        (said(5), "text"),
        (said(None, caption=["a"]), "caption"),
        (said(message_id="12"), "message_id"),
        (said(message_id=True), "message_id"),
        (said(message_id=12.0), "message_id"),
        (said(message_id=10**5000), "message_id"),
        (said(date="yesterday"), "date"),
        (said(date=-1), "date"),
        (said(date=10**18), "date"),
        (said(chat=None), "chat"),
        (said(chat={**WITH_ANN, "id": "7"}), "id"),
        (said(chat={**WITH_ANN, "id": 1 << 63}), "id"),
        (said(chat={"type": "private"}), "id"),
        (said(chat={"id": 7, "type": 5}), "chat.type"),
        (said(**{"from": {"id": None}}), "id"),
        (said(**{"from": "Ann"}), "from"),
        (said_in(TEAM, sender_chat=5), "sender_chat"),
        (said(is_topic_message=True, message_thread_id="x"), "message_thread_id"),
        (said(is_topic_message=True), "message_thread_id"),
        (said(None, photo=[]), "photo"),
        (said(None, photo="x"), "photo"),
        (said(None, photo=[{"file_id": ""}]), "file_id"),
        (said(None, document={"file_name": "a.txt"}), "file_id"),
        (said(None, voice="secret"), "voice"),
        (said(migrate_to_chat_id="x"), "migrate_to_chat_id"),
    ],
)
def test_a_malformed_update_names_the_field_and_not_what_it_holds(raw: object, field: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(raw)
    assert str(caught.value).startswith(f"{field}: ")
    assert len(str(caught.value)) < 60
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ({"update_id": 5}, 5),
        ({"update_id": "5"}, None),
        ({"update_id": 5.0}, None),
        ({"update_id": True}, None),
        ({"update_id": 10**5000}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_only_a_whole_number_is_an_update_id(raw: object, number: int | None) -> None:
    assert update_id(raw) == number


def test_a_bot_whose_name_is_not_known_still_reads() -> None:
    nameless = Bot(4242, "")
    assert parsed(said("@GoclawTestBot hi"), bot=nameless).text == "@GoclawTestBot hi"
    assert not parsed(said_in(TEAM, "hi"), bot=nameless).addressed
    assert not parsed(said_in(TEAM, "/stop@GoclawTestBot"), bot=nameless).addressed
    assert parsed(said_in(TEAM, "/stop"), bot=nameless).addressed

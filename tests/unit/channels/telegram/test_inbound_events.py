"""``channels.telegram.inbound``: presses, stops, and what becomes of chats."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from channels.telegram.inbound.reader import Malformed, press_of
from goclaw_py.core.chat_commands import StopCommand, parse_command
from goclaw_py.core.messages import (
    ChatMigrated,
    ChatReached,
    InboundMessage,
    PeerKind,
    Sender,
    Target,
    TopicChanged,
    TopicState,
)
from tests.unit.channels.telegram.updates import (
    ANN,
    BEN,
    BOT,
    FORUM,
    GROUP,
    NEWS,
    NOON,
    OURSELVES,
    RESTRICTED,
    TEAM,
    WITH_ANN,
    Json,
    answer,
    message,
    moved,
    parsed,
    reached,
    read,
    said,
    said_in,
    said_in_topic,
    update,
)

KEYBOARD: Json = {
    "inline_keyboard": [
        [{"text": "Docs", "url": "https://example.org"}, {"text": "Yes", "callback_data": "y:1"}],
        [{"text": "No", "callback_data": "n:1"}],
    ]
}


def pressed(data: object = "n:1", under: object = None, **more: object) -> Json:
    """Ann presses a button under message 11, which is ours."""
    query: Json = {
        "id": "4382bfdwdsb323b2d9",
        "from": ANN,
        "message": answer(reply_markup=KEYBOARD) if under is None else under,
        "chat_instance": "-8034",
        "data": data,
        **more,
    }
    return update("callback_query", {k: v for k, v in query.items() if v is not None})


def test_a_press_says_what_its_button_says() -> None:
    assert parsed(pressed()) == InboundMessage(
        external_id="press:4382bfdwdsb323b2d9",
        target=Target("telegram", "default", "7"),
        peer=PeerKind.DIRECT,
        sender=Sender("7", "Ann Lee", "annlee"),
        text="No",
        sent_at=datetime.fromtimestamp(NOON, UTC),
        reply_to="11",
        press="n:1",
        place_name="Ann Lee",
    )
    assert parsed(pressed("y:1")).text == "Yes"


def test_a_press_in_a_topic_of_a_group_is_for_us_and_by_who_pressed() -> None:
    under = answer(chat=FORUM, message_thread_id=55, is_topic_message=True, reply_markup=KEYBOARD)
    found = parsed(pressed(under=under, **{"from": BEN}))
    assert found.target == Target("telegram", "default", "-1001008", "55")
    assert (found.sender.id, found.addressed, found.place_name) == ("8", True, "Plans")


def test_a_press_under_a_message_that_is_not_accessible_any_more_still_counts() -> None:
    found = parsed(pressed(under={"chat": TEAM, "message_id": 11, "date": 0}))
    assert (found.text, found.press, found.reply_to) == ("n:1", "n:1", "11")
    assert found.target == Target("telegram", "default", "-1001007")


@pytest.mark.parametrize(
    "markup",
    [
        None,
        5,
        {"inline_keyboard": 5},
        {"inline_keyboard": [5, [5, {}]]},
        {"inline_keyboard": [[{"text": 5, "callback_data": "n:1"}]]},
        {"inline_keyboard": [[{"text": "No", "callback_data": ["n:1"]}]]},
        {"inline_keyboard": [[{"text": "No", "callback_data": "n:2"}]]},
    ],
)
def test_a_press_of_a_button_that_is_gone_says_its_data(markup: object) -> None:
    assert parsed(pressed(under=answer(reply_markup=markup))).text == "n:1"


@pytest.mark.parametrize(
    "raw",
    [
        update("callback_query", {"id": "5", "from": ANN, "inline_message_id": "x", "data": "y"}),
        pressed(None, game_short_name="chess"),
        pressed(under=answer(chat=NEWS)),
    ],
)
def test_a_press_where_nothing_can_be_answered_is_passed_over(raw: Json) -> None:
    assert read(raw) is None
    assert press_of(raw) is not None, "but the client still waits for an answer"


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (pressed(id=5), "id"),
        (pressed(id=""), "id"),
        (pressed(["secret"]), "data"),
        (pressed(""), "data"),
        (pressed(under="secret"), "message"),
        (pressed(under=answer(message_id="secret")), "message_id"),
        (pressed(**{"from": {}}), "id"),
        (pressed(under=answer(date="secret")), "date"),
    ],
)
def test_a_malformed_press_says_so(raw: Json, field: str) -> None:
    with pytest.raises(Malformed, match=f"^{field}: ") as caught:
        read(raw)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (pressed("stop:r"), ("4382bfdwdsb323b2d9", "stop:r")),
        (pressed(id=5), None),
        (pressed(id=""), None),
        (said(), None),
        ({"callback_query": 5}, None),
        (5, None),
    ],
)
def test_only_a_press_has_the_id_of_a_press(raw: object, found: tuple[str, str] | None) -> None:
    assert press_of(raw) == found


def stopped(**more: object) -> Json:
    return update("stopped_message_generation", {"chat": WITH_ANN, "draft_id": 77, **more})


def test_the_stop_button_under_a_draft_is_a_stop_by_its_reader() -> None:
    """SPEC CMD-2."""
    found = parsed(stopped())
    assert parse_command(found.text, BOT.username) == StopCommand(everything=False)
    assert (found.sender, found.target) == (
        Sender("7", "Ann Lee", "annlee"),
        Target("telegram", "default", "7"),
    )
    assert (found.external_id, found.message_id, found.reply_to) == ("stop:7:77:900", None, None)
    assert (found.peer, found.addressed, found.place_name) == (PeerKind.DIRECT, True, "Ann Lee")


def test_the_stop_button_in_a_topic_stops_there() -> None:
    assert parsed(stopped(message_thread_id=31)).target.thread == "31"
    assert parsed(stopped(message_thread_id=1)).target.thread is None


def test_a_stop_button_in_a_group_would_have_no_sender() -> None:
    assert read(stopped(chat=TEAM)) is None


def test_a_stop_that_cannot_be_told_from_others_is_malformed() -> None:
    raw = stopped()
    del raw["update_id"]
    for broken in (raw, stopped(draft_id="x"), stopped(message_thread_id="x"), stopped(chat=5)):
        with pytest.raises(Malformed):
            read(broken)


def membership(chat: Json, status: object, more: Json | None = None) -> Json:
    member = {"user": OURSELVES, **(more or {}), "status": status}
    return update(
        "my_chat_member",
        {
            "chat": chat,
            "from": ANN,
            "date": NOON,
            "old_chat_member": {"user": OURSELVES, "status": "member"},
            "new_chat_member": member,
        },
    )


@pytest.mark.parametrize(
    ("chat", "status", "more", "gone"),
    [
        (WITH_ANN, "kicked", {"until_date": 0}, "the bot was blocked"),
        (WITH_ANN, "member", {}, ""),
        (GROUP, "left", {}, "the bot was removed"),
        (GROUP, "kicked", {"until_date": 0}, "the bot was removed"),
        (GROUP, "member", {}, ""),
        (TEAM, "administrator", {"can_be_edited": False}, ""),
        (TEAM, "restricted", RESTRICTED, "the bot is not allowed to write"),
        (TEAM, "restricted", {**RESTRICTED, "can_send_messages": True}, ""),
        (TEAM, "restricted", {**RESTRICTED, "is_member": False}, "the bot was removed"),
    ],
)
def test_whether_we_may_write_to_a_chat_is_told(
    chat: Json, status: str, more: Json, gone: str
) -> None:
    """SPEC CHAN-7."""
    private = chat is WITH_ANN
    assert reached(membership(chat, status, more)) == ChatReached(
        Target("telegram", "default", str(chat["id"])),
        PeerKind.DIRECT if private else PeerKind.GROUP,
        gone,
        "Ann Lee" if private else str(chat["title"]),
    )


def test_a_channel_or_a_status_of_next_year_tells_nothing() -> None:
    assert read(membership(NEWS, "administrator")) is None
    assert read(membership(TEAM, "of next year")) is None


@pytest.mark.parametrize(
    "raw",
    [
        membership(TEAM, 5),
        update("my_chat_member", {"chat": TEAM}),
        update("my_chat_member", {"new_chat_member": {"status": "member"}}),
        membership({"type": "group"}, "left"),
    ],
)
def test_a_malformed_membership_says_so(raw: Json) -> None:
    with pytest.raises(Malformed):
        read(raw)


def test_both_chats_tell_the_same_migration() -> None:
    """SPEC CHAN-7."""
    expected = ChatMigrated("telegram", "default", "-5007", "-1001007")
    assert moved(said(None, chat=GROUP, migrate_to_chat_id=-1001007)) == expected
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    new = message(None, chat=TEAM, sender_chat=TEAM, migrate_from_chat_id=-5007)
    assert moved(update("message", {**new, "from": anonymous})) == expected


@pytest.mark.parametrize("field", ["migrate_to_chat_id", "migrate_from_chat_id"])
def test_a_migration_to_nowhere_is_malformed(field: str) -> None:
    with pytest.raises(Malformed, match=field):
        read(said(None, chat=GROUP, **{field: "-1001007"}))


@pytest.mark.parametrize(
    ("content", "name", "state"),
    [
        ({"forum_topic_created": {"name": "Bud\nget", "icon_color": 5}}, "Bud get",
         TopicState.OPEN),
        ({"forum_topic_edited": {"name": "Money"}}, "Money", None),
        ({"forum_topic_edited": {}}, "", None),
        ({"forum_topic_edited": {"name": 7}}, "", None),
        ({"forum_topic_closed": {}}, "", TopicState.CLOSED),
        ({"forum_topic_reopened": True}, "", TopicState.OPEN),
    ],
)  # fmt: skip
def test_what_happens_to_a_topic_is_told(
    content: Json, name: str, state: TopicState | None
) -> None:
    """SPEC CHAN-6: also if the bot itself has done it."""
    topic = {"chat": FORUM, "message_thread_id": 55, "is_topic_message": True, "text": None}
    raw = update(content=message(**{**topic, **content}))
    place = Target("telegram", "default", str(FORUM["id"]), "55")
    expected = TopicChanged(place, PeerKind.GROUP, name, bool(name), state, "Plans")
    assert read(raw) == expected


def test_what_happens_to_the_general_topic_has_no_thread() -> None:
    raw = update(content=message(chat=FORUM, text=None, forum_topic_closed={}))
    changed = read(raw)
    assert isinstance(changed, TopicChanged)
    assert changed.target.thread is None


def test_a_message_in_a_topic_tells_what_that_was_called_first() -> None:
    assert parsed(said_in_topic()).topic_name == "Budget"
    other = message("yes", message_id=9)
    in_topic = {"message_thread_id": 55, "is_topic_message": True, "reply_to_message": other}
    assert parsed(said_in(FORUM, **in_topic)).topic_name == ""
    assert parsed(said()).topic_name == ""

"""``channels.telegram.inbound.content`` and ``inbound_rich``: what a message says (SPEC CHAN-6)."""

from __future__ import annotations

import pytest

from channels.telegram.fields import NAME_LIMIT
from goclaw_py.core.messages import Attachment, FileKind
from tests.unit.channels.telegram.updates import (
    ANN,
    DOCUMENT,
    FORUM,
    NEWS,
    NOON,
    PHOTO,
    STICKER,
    TEAM,
    Json,
    edited,
    message,
    parsed,
    read,
    said,
    said_in,
    said_in_topic,
)

VOICE: Json = {
    "duration": 4,
    "mime_type": "audio/ogg",
    "file_id": "v",
    "file_unique_id": "uv",
    "file_size": 9_000,
}
AUDIO: Json = {
    "duration": 200, "file_name": "song.mp3", "mime_type": "audio/mpeg", "title": "Song",
    "performer": "Ann", "file_id": "a", "file_unique_id": "ua", "file_size": 3_000_000,
}  # fmt: skip
VIDEO: Json = {
    "duration": 4, "width": 640, "height": 480, "file_name": "IMG_1.MP4",
    "mime_type": "video/mp4", "file_id": "vid", "file_unique_id": "uvid", "file_size": 700_000,
}  # fmt: skip
VIDEO_NOTE: Json = {
    "duration": 4,
    "length": 240,
    "file_id": "n",
    "file_unique_id": "un",
    "file_size": 80_000,
}
LIVE_PHOTO: Json = {
    "file_id": "l", "file_unique_id": "ul", "width": 640, "height": 480, "duration": 2,
    "photo": PHOTO,
}  # fmt: skip


def attached(**content: object) -> Attachment:
    found = parsed(said(None, **content))
    assert (found.text, found.unsupported) == ("", "")
    (attachment,) = found.attachments
    return attachment


@pytest.mark.parametrize(
    ("content", "attachment"),
    [
        ({"photo": PHOTO}, Attachment(FileKind.PHOTO, "x", "", "image/jpeg", 190_000)),
        ({"photo": PHOTO, "live_photo": LIVE_PHOTO}, Attachment(FileKind.PHOTO, "x", "",
         "image/jpeg", 190_000)),
        ({"document": DOCUMENT}, Attachment(FileKind.DOCUMENT, "doc", "report.pdf",
         "application/pdf", 30_000)),
        ({"voice": VOICE}, Attachment(FileKind.VOICE, "v", "", "audio/ogg", 9_000)),
        ({"audio": AUDIO}, Attachment(FileKind.AUDIO, "a", "song.mp3", "audio/mpeg", 3_000_000)),
        ({"video": VIDEO}, Attachment(FileKind.VIDEO, "vid", "IMG_1.MP4", "video/mp4", 700_000)),
        ({"animation": {**VIDEO, "file_id": "gif"}, "document": DOCUMENT},
         Attachment(FileKind.VIDEO, "gif", "IMG_1.MP4", "video/mp4", 700_000)),
        ({"video_note": VIDEO_NOTE}, Attachment(FileKind.VIDEO, "n", "", "video/mp4", 80_000)),
    ],
)  # fmt: skip
def test_a_file_becomes_an_attachment(content: Json, attachment: Attachment) -> None:
    assert attached(**content) == attachment


def test_a_file_keeps_its_caption() -> None:
    found = parsed(said(None, document=DOCUMENT, caption="read this"))
    assert (found.text, found.attachments[0].ref) == ("read this", "doc")


@pytest.mark.parametrize(
    ("sizes", "ref"),
    [
        ([{"file_id": "a", "width": 9, "height": 9}, {"file_id": "b", "file_size": 5}], "b"),
        ([{"file_id": "a", "width": 9, "height": 9}, {"file_id": "b", "width": 8}], "a"),
        ([{"file_id": "a", "file_size": 5}, "x", {"file_id": 5, "file_size": 9}, {}], "a"),
        ([{"file_id": "a", "file_size": 5}, {"file_id": "b", "file_size": "99"}], "a"),
    ],
)
def test_the_largest_size_of_a_photo_whose_size_is_known_is_taken(
    sizes: list[object], ref: str
) -> None:
    assert attached(photo=sizes).ref == ref


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("..\\x.exe", ".._x.exe"),
        ("..", ""),
        ("/", "_"),
        (".env", ".env"),
        ("a\x00b\nc\x1b[0m.txt", "a b c [0m.txt"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("  a \u200b b.txt. ", "a b.txt"),
        ("a\ud83d.txt", "a\ufffd.txt"),
        (5, ""),
        (None, ""),
        ("x" * 500, "x" * 127 + "…"),
        ("x" * 500 + ".pdf", "x" * 123 + "….pdf"),
        ("x." + "y" * 500, "x." + "y" * 125 + "…"),
        ("." + "y" * 500, "." + "y" * 126 + "…"),
    ],
)
def test_a_file_name_is_a_plain_name(given: object, name: str) -> None:
    """SPEC SEC-3."""
    assert attached(document={**DOCUMENT, "file_name": given}).name == name
    assert len(name) <= NAME_LIMIT


@pytest.mark.parametrize(
    ("given", "mime"),
    [
        ("Image/PNG", "image/png"),
        ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
        ("text/plain; charset=x", ""),
        ("text/plain\nX: y", ""),
        ("", ""),
        (5, ""),
        ("a" * 5000 + "/b", ""),
    ],
)
def test_a_mime_type_is_one_or_nothing(given: object, mime: str) -> None:
    assert attached(document={**DOCUMENT, "mime_type": given}).mime == mime


@pytest.mark.parametrize("size", [None, "5", -1, 5.0, True, 1 << 63])
def test_a_size_that_is_none_is_unknown(size: object) -> None:
    assert attached(document={**DOCUMENT, "file_size": size}).size is None


def test_a_sticker_says_its_emoji() -> None:
    found = parsed(said(None, sticker=STICKER))
    assert (found.text, found.attachments, found.unsupported) == ("👍", (), "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"location": {"latitude": 52.52, "longitude": 13}}, "[location: 52.52, 13]"),
        (
            {
                "venue": {
                    "title": "Cafe",
                    "address": "1 Main St",
                    "location": {"latitude": 1.5, "longitude": 2.5},
                },
                "location": {"latitude": 1.5, "longitude": 2.5},
            },
            "[place: Cafe, 1 Main St, 1.5, 2.5]",
        ),
        ({"contact": {"phone_number": "+1555", "first_name": "Ben", "last_name": "A\nB"}},
         "[contact: Ben A B, +1555]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}},
         "[poll: Tea? Options: yes; no]"),
        ({"poll": {"question": "q" * 300}}, f"[poll: {'q' * 300}]"),
        ({"checklist": {"title": "C", "tasks": []}}, "[checklist: C]"),
        ({"checklist": {"title": "Shop", "tasks": [{"text": "milk"}, {"text": "a\nb",
         "completion_date": NOON}]}}, "[checklist: Shop. ☐ milk; ☑ a b]"),
    ],
)  # fmt: skip
def test_what_is_shared_reaches_the_agent_as_text(content: Json, words: str) -> None:
    """SPEC CHAN-6."""
    found = parsed(said(None, **content))
    assert (found.text, found.unsupported) == (words, "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"sticker": {**STICKER, "emoji": None}}, "a sticker"),
        ({"location": {"latitude": "1.5", "longitude": True}}, "a location"),
        ({"venue": {"address": "nowhere"}}, "a venue"),
        ({"contact": {"phone_number": 5}}, "a contact"),
        ({"poll": {"id": "5", "options": []}}, "a poll"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "a dice"),
        ({"game": {"title": "G", "description": "g", "photo": PHOTO}}, "a game"),
        ({"invoice": {"title": "I", "currency": "EUR", "total_amount": 5}}, "an invoice"),
        ({"story": {"chat": NEWS, "id": 3}}, "a story"),
        ({"checklist": {"tasks": [{"text": 5}]}}, "a checklist"),
        ({"giveaway": {"chats": [NEWS], "winner_count": 1}}, "a giveaway"),
        ({"giveaway_winners": {"chat": NEWS}}, "the winners of a giveaway"),
        ({"paid_media": {"star_count": 5, "paid_media": []}}, "paid media"),
        ({"rich_message": {"blocks": [{"type": "divider"}]}}, "a rich message"),
        ({"of_next_year": {}}, "this kind of message"),
        ({}, "this kind of message"),
    ],
)
def test_what_no_agent_can_be_given_is_named(content: Json, words: str) -> None:
    found = parsed(said(None, **content))
    assert (found.text, found.attachments, found.unsupported) == ("", (), words)
    assert (found.external_id, found.message_id) == ("7:12", "12")


def test_what_cannot_be_read_is_named_below_its_caption() -> None:
    found = parsed(said(None, caption="pay", paid_media={"star_count": 5}))
    assert (found.text, found.markdown) == ("pay", "pay\n[paid media]")
    assert parsed(edited(None, caption="pay", paid_media={})).text == "pay"


def test_a_changed_checklist_is_an_edit() -> None:
    checklist = {"title": "Shop", "tasks": [{"text": "milk"}]}
    assert parsed(edited(None, checklist=checklist)).edits == "7:12"


def test_an_unknown_kind_in_a_group_may_be_a_service_message() -> None:
    assert read(said_in(TEAM, None, of_next_year={})) is None
    assert parsed(said_in(TEAM, None, location={})).unsupported == "a location"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("new_chat_members", [ANN]),
        ("left_chat_member", ANN),
        ("new_chat_title", "Team"),
        ("new_chat_photo", PHOTO),
        ("delete_chat_photo", True),
        ("group_chat_created", True),
        ("message_auto_delete_timer_changed", {"message_auto_delete_time": 86_400}),
        ("pinned_message", message()),
        ("successful_payment", {"currency": "XTR", "total_amount": 5}),
        ("users_shared", {"request_id": 1, "users": []}),
        ("chat_shared", {"request_id": 1, "chat_id": -5}),
        ("gift", {"gift": {}}),
        ("connected_website", "example.org"),
        ("write_access_allowed", {}),
        ("proximity_alert_triggered", {"traveler": ANN, "watcher": ANN, "distance": 5}),
        ("boost_added", {"boost_count": 1}),
        ("chat_background_set", {"type": {"type": "pattern"}}),
        ("checklist_tasks_done", {"marked_as_done_task_ids": [1]}),
        ("general_forum_topic_hidden", {}),
        ("giveaway_created", {}),
        ("video_chat_scheduled", {"start_date": NOON}),
        ("video_chat_started", {}),
        ("video_chat_ended", {"duration": 5}),
        ("video_chat_participants_invited", {"users": [ANN]}),
        ("web_app_data", {"data": "x", "button_text": "y"}),
        ("poll_option_added", {"option_persistent_id": "1", "option_text": "x"}),
        ("chat_owner_changed", {"new_owner": ANN}),
        ("managed_bot_created", {"bot": ANN}),
        ("community_chat_joined", {}),
    ],
)
def test_a_service_message_says_nothing(field: str, value: object) -> None:
    assert read(said(None, **{field: value})) is None
    assert read(said_in(FORUM, None, **{field: value})) is None
    assert read(said_in_topic(None, **{field: value})) is None


CELL: Json = {"align": "left", "valign": "top"}
RICH: Json = {
    "blocks": [
        {"type": "heading", "text": "Plan", "size": 1},
        {
            "type": "paragraph",
            "text": [
                "Ask ",
                {"type": "mention", "text": "@GoclawTestBot", "username": "GoclawTestBot"},
                " for ",
                {"type": "bold", "text": {"type": "italic", "text": "two"}},
                {"type": "custom_emoji", "custom_emoji_id": "5", "alternative_text": "🙂"},
            ],
        },
        {"type": "divider"},
        {"type": "list",
         "items": [{"label": "1.", "blocks": [{"type": "paragraph", "text": "eggs"}]},
         {"label": "2.", "blocks": [{"type": "paragraph", "text": "milk"}]}]},
        {"type": "table", "cells": [[{"text": "a", **CELL}, {"text": ["b"], **CELL}],
         [CELL, {"text": "c", **CELL}]], "caption": "numbers"},
        {"type": "photo", "photo": PHOTO, "caption": {"text": "a cat", "credit": "Ann"}},
        {"type": "blockquote", "blocks": [{"type": "paragraph", "text": "so"}], "credit": "Ben"},
        {"type": "details", "summary": "More", "blocks": [{"type": "pre", "text": "x = 1"}]},
        {"type": "mathematical_expression", "expression": "a^2"},
    ]
}  # fmt: skip


def test_a_rich_message_is_read_as_text() -> None:
    """People forward what other bots have written."""
    assert parsed(said(None, rich_message=RICH)).text.splitlines() == [
        "Plan", "Ask @GoclawTestBot for two🙂", "1. eggs", "2. milk", "a | b", " | c", "numbers",
        "a cat", "so", "Ben", "More", "x = 1", "a^2",
    ]  # fmt: skip


def test_a_rich_message_can_mention_and_be_quoted() -> None:
    assert parsed(said_in(TEAM, None, rich_message=RICH)).addressed
    other: Json = {
        "blocks": [{"type": "paragraph", "text": "ask GoclawTestBot, ann@GoclawTestBot"}]
    }
    assert not parsed(said_in(TEAM, None, rich_message=other)).addressed
    replied = message(None, message_id=9, rich_message=other)
    assert parsed(said(reply_to_message=replied)).quote.startswith("ask GoclawTestBot")


def nested(levels: int, key: str) -> object:
    value: object = "deep"
    for _ in range(levels):
        value = {"type": "x", key: [value] if key == "blocks" else value}
    return value


@pytest.mark.parametrize("key", ["text", "blocks"])
def test_a_rich_message_of_any_depth_is_read_in_part(key: str) -> None:
    block = {"type": "paragraph", "text": "top", "blocks": [nested(900, key)]}
    found = parsed(said(None, rich_message={"blocks": [block, {"text": nested(900, "text")}]}))
    assert found.text == "top"


@pytest.mark.parametrize("rich", [5, [], {}, {"blocks": 5}, {"blocks": [5, {"text": 5}]}])
def test_a_broken_rich_message_is_one_that_cannot_be_read(rich: object) -> None:
    assert parsed(said(None, rich_message=rich)).unsupported == "a rich message"

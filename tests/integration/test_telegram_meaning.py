"""What a message refers to, over both libraries: each kind of content in each place.

Kinds: files, what is shared, formatted text. Places: a message of its own, a reply to it, a quote
of it, a forward, a caption, an album. The updates are those of a strict Bot API emulator.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.core.messages import InboundMessage
from tests.botapi.files import FileKind
from tests.botapi.people import OTHER, user
from tests.botapi.rules import Json, units
from tests.support.telegram import ANN, BEN, GROUP, Line

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

POST = "https://example.com/post/42"
WORDS = "🙂 read the article"
MARKDOWN = f"🙂 read the [article]({POST})"
LINK: list[Json] = [
    {"type": "text_link", "offset": units(WORDS) - 7, "length": 7, "url": POST},
]
TEXTS: dict[str, tuple[Json, str]] = {
    "text": ({"text": WORDS, "entities": LINK}, MARKDOWN),
    "rich": (
        {"rich_message": {"blocks": [{"type": "paragraph", "text": [
            "🙂 read the ", {"type": "url", "text": "article", "url": POST}]}]}},
        MARKDOWN,
    ),
    "location": (OTHER["location"], "[location: 48.1, 11.6]"),
    "venue": (
        {"venue": {"title": "Cafe", "address": "1 Main St",
                   "location": {"latitude": 48.1, "longitude": 11.6}}},
        "[place: Cafe, 1 Main St, 48.1, 11.6]",
    ),
    "contact": (OTHER["contact"], "[contact: Bob, +4912345]"),
    "poll": (OTHER["poll"], "[poll: Tea? Options: yes; no]"),
    "sticker": ({"sticker": {"file_id": "s", "emoji": "👍"}}, "👍"),
    "checklist": (
        {"checklist": {"title": "Shop", "tasks": [{"id": 1, "text": "milk"}]}},
        "[checklist: Shop. ☐ milk]",
    ),
    "dice": (OTHER["dice"], "[a dice: 🎲 4]"),
}  # fmt: skip
NAME = "@GoclawTestBot"


async def received(line: Line, count: int) -> list[InboundMessage]:
    await line.inbox.until(lambda: len(line.inbox.messages) >= count)
    return line.inbox.messages[:count]


def number(message: Json) -> int:
    found = message["message_id"]
    assert isinstance(found, int)
    return found


def forwarded(content: Json) -> Json:
    origin = {"type": "user", "sender_user": user(BEN, "Ben", None), "date": 1}
    return {**content, "forward_origin": origin}


async def test_what_people_write_and_share_is_read_wherever_it_stands(polling: Line) -> None:
    """SPEC CHAN-6, CHAN-11."""
    api = polling.api
    async with polling.receiving():
        for content, _ in TEXTS.values():
            first = api.send_other(ANN, dict(content))
            api.say(ANN, "why?", reply_to=number(first))
            api.send_other(ANN, forwarded(content))
        found = await received(polling, 3 * len(TEXTS))
    for place, (kind, (_, told)) in enumerate(TEXTS.items()):
        own, reply, forward = found[3 * place : 3 * place + 3]
        # The sender of something that no agent can read is told so.
        words = "" if kind == "dice" else told
        assert (own.markdown, forward.markdown) == (words, words), kind
        assert (reply.markdown, reply.quote) == ("why?", told), kind
        assert forward.forwarded_from is not None


async def test_a_selected_part_keeps_its_addresses(polling: Line) -> None:
    """SPEC CHAN-6."""
    api = polling.api
    async with polling.receiving():
        first = api.send_other(ANN, {"text": WORDS, "entities": LINK})
        quote = {"text": "the article", "position": 9, "entities": [{**LINK[0], "offset": 4}]}
        replied = {"reply_to_message": first, "quote": quote}
        api.send_other(ANN, {"text": "why?", **replied})
        _, reply = await received(polling, 2)
    assert reply.quote == f"the [article]({POST})"


async def test_each_file_comes_with_a_reply_to_it(polling: Line, tmp_path: Path) -> None:
    """SPEC CHAN-6: with its caption, also forwarded, and to a member's album in a group."""
    api = polling.api
    api.add_group(GROUP, "Team")
    async with polling.receiving():
        for kind in FileKind:
            content = kind.value.encode() if kind is not FileKind.PHOTO else None
            first = api.send(BEN, kind, caption="look", content=content, chat_id=GROUP)
            first.update(caption=WORDS, caption_entities=LINK)
            api.say(ANN, f"{NAME} what is it?", chat_id=GROUP, reply_to=number(first))
            api.say(ANN, NAME, chat_id=GROUP, reply_to=number(first))
            api.say(ANN, f"{NAME} here", chat_id=GROUP, reply_to=number(first), quote="read")
            shown = {key: first[key] for key in (kind.value, "caption", "caption_entities")}
            api.send_other(ANN, forwarded(shown))
        found = await received(polling, 5 * len(FileKind))
        for place, kind in enumerate(FileKind):
            first_, asked, named, part, forward = found[5 * place : 5 * place + 5]
            (file,) = asked.quoted_files
            assert file == first_.attachments[0]
            assert (asked.text, asked.quote, asked.addressed) == ("what is it?", MARKDOWN, True)
            assert (named.text, named.quote, named.quoted_files) == ("", MARKDOWN, (file,))
            assert (part.quote, part.quoted_files) == ("read", (file,))
            assert (forward.markdown, forward.attachments) == (MARKDOWN, (file,))
            assert forward.quoted_files == asked.attachments == ()
            path = tmp_path / kind.value
            await polling.channel.fetch(file, path)
            assert path.stat().st_size > 0


async def test_an_album_keeps_its_captions_and_is_replied_to_by_file(polling: Line) -> None:
    """SPEC CHAN-6."""
    api = polling.api
    async with polling.receiving():
        group = "77"
        parts = [
            api.send(ANN, kind, caption=f"caption {place}", album=group)
            for place, kind in enumerate([FileKind.PHOTO, FileKind.VIDEO, FileKind.PHOTO])
        ]
        api.say(ANN, "this one", reply_to=number(parts[1]))
        *album, reply = await received(polling, 4)
    assert [one.text for one in album] == ["caption 0", "caption 1", "caption 2"]
    assert len({one.album for one in album}) == 1
    assert (reply.quote, reply.quoted_files) == ("caption 1", album[1].attachments)

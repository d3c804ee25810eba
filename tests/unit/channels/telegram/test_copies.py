"""The line of a message that was sent again goes if there is no other copy (SPEC IO-5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.telegram.client import Buttons, ChatPlace, MessageGone, Text
from goclaw_py.core.errors import ChatGone, MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.core.messages import Button, FileKind, OutboundMessage, OutFile, Target
from tests.support.again import SENT_AGAIN
from tests.support.outbox import an_outbox
from tests.unit.channels.telegram.scripted import ScriptedClient, Sent, over

ANN = Target("telegram", "default", "7")
TEAM = Target("telegram", "default", "-1001")
FIRST = OutboundMessage(ANN, "first")
HELLO = OutboundMessage(ANN, "hello")


class Applying(ScriptedClient):
    """Some of its lost sends arrive all the same."""

    applied: bool = False

    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        try:
            return await super().send_message(place, text, reply_to=reply_to, buttons=buttons)
        except MaybeSent:
            if self.applied:
                await super().send_message(place, text, reply_to=reply_to, buttons=buttons)
            raise


def shown(client: ScriptedClient) -> list[str]:
    return [message.text for message in client.messages.values()]


def of_others(client: ScriptedClient, count: int) -> None:
    """Let others write: their messages have ids, but are none of ours."""
    client.sent += [Sent(0, ChatPlace(7), "", False, None, ())] * count


@pytest.mark.parametrize("target", [ANN, TEAM, Target("telegram", "default", "-5")])
@pytest.mark.parametrize("buttons", [(), ((Button("Done", "d:1"),),)])
@pytest.mark.parametrize("between", [0, 3, 16])
async def test_what_certainly_came_once_has_no_line_in_the_end(
    target: Target, buttons: tuple[tuple[Button, ...], ...], between: int
) -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(replace(FIRST, target=target))
        of_others(client, between)
        client.fail("send_message", MaybeSent("reset"))
        (row,) = await post.sent(replace(HELLO, target=target, buttons=buttons))
        assert (row.attempts, row.possible_duplicate) == (2, False)
    assert shown(client) == ["first", "hello"]
    assert [text.text for _, text in client.edits] == ["hello"]
    said = list(client.messages.values())[-1]
    assert [[label for label, _ in line] for line in said.buttons] == (
        [["Done"]] if buttons else []
    )


@pytest.mark.parametrize("buttons", [(), ((Button("Done", "d:1"),),)])
async def test_what_was_applied_before_the_reset_keeps_its_line(
    buttons: tuple[tuple[Button, ...], ...],
) -> None:
    client = Applying()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(FIRST)
        client.applied = True
        client.fail("send_message", MaybeSent("reset"))
        (row,) = await post.sent(replace(HELLO, buttons=buttons))
        assert row.possible_duplicate
    assert shown(client) == ["first", "hello", "hello" + SENT_AGAIN]


@pytest.mark.parametrize(
    ("why", "first", "between", "error"),
    [
        ("nothing is known to be earlier", False, 0, None),
        ("too much was said meanwhile", True, 17, None),
        ("the look has no answer", True, 1, MaybeSent("reset")),
        ("the look is not possible", True, 1, NotSent("no route")),
        ("the look is refused for now", True, 1, RateLimited("slow down", 3)),
        ("the look is refused for another reason", True, 1, Undeliverable("odd")),
        ("the chat is gone", True, 1, ChatGone("blocked")),
    ],
)
async def test_what_is_uncertain_keeps_its_line(
    why: str, first: bool, between: int, error: Exception | None
) -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        if first:
            await post.sent(FIRST)
        of_others(client, between)
        client.fail("send_message", MaybeSent("reset"))
        if error is not None:
            assert isinstance(error, NotSent | MaybeSent | RateLimited | Undeliverable)
            client.fail("set_buttons", error)
        (row,) = await post.sent(HELLO)
        assert row.possible_duplicate, why
    assert shown(client)[-1] == "hello" + SENT_AGAIN


@pytest.mark.parametrize("error", [NotSent("no route"), MessageGone("deleted")])
async def test_a_line_that_cannot_be_edited_away_stays_in_the_record(error: Exception) -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(FIRST)
        client.fail("send_message", MaybeSent("reset"))
        assert isinstance(error, NotSent | MessageGone)
        client.fail("edit_message", error)
        (row, other) = await post.sent(HELLO, replace(HELLO, text="next"))
        assert (row.possible_duplicate, other.possible_duplicate) == (True, False)
    assert shown(client) == ["first", "hello" + SENT_AGAIN, "next"]


async def test_what_is_sent_at_once_is_not_looked_for() -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        client.fail("send_message", NotSent("no route"))
        await post.sent(FIRST, HELLO)
        assert post.store.looks == 0
    assert set(client.calls) == {"send_message"}


def a_file(name: str, kind: FileKind = FileKind.DOCUMENT) -> OutFile:
    return OutFile(kind, f"/tmp/{name}", name)


@pytest.mark.parametrize("caption", ["", "the report"])
@pytest.mark.parametrize("kind", list(FileKind))
async def test_a_file_that_came_once_has_its_own_caption_in_the_end(
    kind: FileKind, caption: str
) -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(FIRST)
        of_others(client, 3)
        client.fail("send_file", MaybeSent("reset"))
        (row,) = await post.sent(OutboundMessage(ANN, caption, file=a_file("a", kind)))
        assert (row.attempts, row.possible_duplicate) == (2, False)
    assert shown(client) == ["first", caption]


async def test_a_file_whose_caption_cannot_be_edited_keeps_line_and_record() -> None:
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(FIRST)
        client.fail("send_file", MaybeSent("reset"))
        client.fail("edit_caption", Undeliverable("there is no caption in the message to edit"))
        (row,) = await post.sent(OutboundMessage(ANN, "", file=a_file("a")))
        assert row.possible_duplicate
    assert shown(client) == ["first", SENT_AGAIN.strip()]


async def test_an_album_that_came_once_is_searched_and_edited_once() -> None:
    """Only its first file has the line."""
    client = ScriptedClient()
    async with over(client) as channel, an_outbox(channel) as post:
        await post.sent(FIRST)
        client.fail("send_album", MaybeSent("reset"))
        files = [
            OutboundMessage(ANN, "", file=a_file(name), album="reports") for name in ("a", "b", "c")
        ]
        rows = await post.sent(*files)
        assert [row.possible_duplicate for row in rows] == [False] * 3
    assert shown(client) == ["first", "", "", ""]
    assert client.calls.count("edit_caption") == 1
    assert client.calls.count("set_buttons") == len(set(client.looked))

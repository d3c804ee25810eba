"""Sends without an answer, over both libraries, against a strict Bot API emulator (SPEC IO-5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.chat.channel import Channel
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import FileKind, LostDraft, OutboundMessage, OutFile, Target
from tests.botapi import BotApi, Fault, FaultKind, png
from tests.support.again import SENT_AGAIN
from tests.support.outbox import an_outbox
from tests.support.telegram import ANN, CHAT, GROUP

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

SMALL = -5


def texts(api: BotApi, chat: int) -> list[str]:
    """What the bot has said in a chat."""
    return [seen.text for seen in api.view(chat) if seen.mine]


@pytest.mark.parametrize("chat", [ANN, GROUP, SMALL])
@pytest.mark.parametrize(
    ("fault", "applied"),
    [
        (FaultKind.RESET, False),
        (FaultKind.PAGE, False),
        (FaultKind.ERROR, False),
        (FaultKind.RESET_AFTER, True),
        (FaultKind.GARBAGE_AFTER, True),
    ],
)
async def test_a_line_about_a_copy_stays_only_if_there_may_be_one(
    api: BotApi, channel: Channel, chat: int, fault: FaultKind, applied: bool
) -> None:
    """502 is an answer of a proxy, or of the Bot API."""
    if chat != ANN:
        api.add_group(chat, "Team", kind="supergroup" if chat == GROUP else "group")
    target = Target("telegram", "default", str(chat))
    async with an_outbox(channel) as post:
        await post.sent(OutboundMessage(target, "first"))
        api.say(ANN, "?", chat_id=chat)
        api.fault(Fault("sendMessage", fault))
        (row,) = await post.sent(OutboundMessage(target, "hello"))
        assert row.possible_duplicate == applied
    again = ["hello", "hello" + SENT_AGAIN] if applied else ["hello"]
    assert texts(api, chat) == ["first", *again]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(
    ("method", "kind", "count"),
    [
        ("sendDocument", FileKind.DOCUMENT, 1),
        ("sendPhoto", FileKind.PHOTO, 1),
        ("sendMediaGroup", FileKind.PHOTO, 2),
    ],
)
async def test_a_line_in_a_caption_stays_only_if_there_may_be_a_copy(
    channel: Channel,
    api: BotApi,
    tmp_path: Path,
    *,
    method: str,
    kind: FileKind,
    count: int,
    applied: bool,
) -> None:
    (tmp_path / "a.png").write_bytes(png())
    file = OutFile(kind, str(tmp_path / "a.png"), "a.png", "image/png")
    message = OutboundMessage(CHAT, "", file=file, album="album" if count > 1 else "")
    fault = FaultKind.RESET_AFTER if applied else FaultKind.RESET
    async with an_outbox(channel) as post:
        await post.sent(OutboundMessage(CHAT, "first"))
        api.say(ANN, "?")
        api.fault(Fault(method, fault))
        rows = await post.sent(*[message] * count)
        assert [row.possible_duplicate for row in rows] == [applied] * count
    again = [""] * count if applied else []
    marked = SENT_AGAIN.strip() if applied else ""
    assert texts(api, ANN) == ["first", *again, marked, *[""] * (count - 1)]


async def test_the_first_answer_in_a_chat_is_looked_for_behind_its_question(
    api: BotApi, channel: Channel
) -> None:
    api.say(ANN, "hello")
    question = str(api.view(ANN)[-1].message_id)
    api.fault(Fault("sendMessage", FaultKind.RESET))
    async with an_outbox(channel) as post:
        answer = replace(OutboundMessage(CHAT, "hi"), reply_to=f"4242:{question}")
        (row,) = await post.sent(answer)
        assert not row.possible_duplicate
    assert texts(api, ANN) == ["hi"]


async def test_a_reply_whose_draft_never_came_loses_its_line(api: BotApi, channel: Channel) -> None:
    api.say(ANN, "hello")
    lost = LostDraft(RunId("r1"), f"4242:{api.view(ANN)[-1].message_id}")
    async with an_outbox(channel) as post:
        (row,) = await post.sent(OutboundMessage(CHAT, "hi", run_id=RunId("r1"), lost=lost))
        assert not row.possible_duplicate
    assert texts(api, ANN) == ["hi"]
    assert [call.method for call in api.calls][-1] == "editMessageText"

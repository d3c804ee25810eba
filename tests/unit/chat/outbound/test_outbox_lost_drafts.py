"""Messages that finish a draft whose post got no answer (SPEC IO-5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.errors import MaybeSent, NotSent, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage, Target
from goclaw_py.core.run_events import ButtonsUsed
from goclaw_py.records import OutboxRow, OutboxState
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.again import SENT_AGAIN
from tests.support.harness import a_process, message, until
from tests.unit.chat.outbound.posts import put

ANN = Target("telegram", "default", "ann")
LOST = LostDraft(RunId("r1"), "4")
REPLY = OutboundMessage(ANN, "the reply", run_id=RunId("r1"), lost=LOST)


class Looking(RecordingChannel):
    """Finds what a test says, one look after the other, then nothing."""

    def __init__(self, *finds: str | Exception | None) -> None:
        super().__init__()
        self.finds = list(finds)
        self.looks: list[str | None] = []
        """Each look, with the message before which it looked."""

    async def find_draft(
        self, target: Target, lost: LostDraft, *, before: str | None, known: Collection[str]
    ) -> str | None:
        assert (target, lost) == (ANN, LOST)
        assert (before in known) == (before is not None)
        self.looks.append(before)
        found = self.finds.pop(0) if self.finds else None
        if isinstance(found, Exception):
            raise found
        return found


async def sent_through(channel: Looking, said: OutboundMessage = REPLY) -> OutboxRow:
    """Send one message."""
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, said)
        (row,) = gateway.database.outbox.values()
        await until(lambda: row.state is OutboxState.SENT)
        return row.row()


async def test_a_reply_becomes_its_lost_draft() -> None:
    channel = Looking("55")
    row = await sent_through(channel)
    assert (row.external_id, row.possible_duplicate) == ("55", False)
    assert channel.sent == [replace(REPLY, draft="55")]
    assert channel.looks == [None]


async def test_a_draft_that_comes_after_its_reply_is_removed() -> None:
    channel = Looking(None, "55")
    row = await sent_through(channel)
    assert (row.external_id, row.possible_duplicate) == ("1", True)
    assert (channel.texts(), channel.deleted) == (["the reply" + SENT_AGAIN], {"55"})
    assert channel.looks == [None, "1"]


@pytest.mark.parametrize(
    ("trouble", "attempts"),
    [
        (Undeliverable("no such chat"), 1),
        (KeyError("a bug"), 1),
        (NotSent("no route"), 2),
        (MaybeSent("reset"), 2),
    ],
)
async def test_a_look_that_fails_costs_no_reply(trouble: Exception, attempts: int) -> None:
    channel = Looking(trouble, None)
    assert (await sent_through(channel)).attempts == attempts
    assert channel.texts() == ["the reply" + SENT_AGAIN]


async def test_an_edit_whose_answer_is_lost_is_repeated_in_the_draft() -> None:
    """It is not looked for again: it shows the reply, and no button."""
    channel = Looking("55")
    channel.fail(SendFailure(NotSent("reset"), arrives=True))
    assert (await sent_through(channel)).external_id == "55"
    assert channel.sent == 2 * [replace(REPLY, draft="55")]


async def test_a_reply_that_may_be_there_says_so_in_the_draft_that_is_found_later() -> None:
    channel = Looking(None, "55")
    channel.fail(SendFailure(MaybeSent("reset"), arrives=True))
    assert (await sent_through(channel)).external_id == "55"
    assert channel.texts() == 2 * ["the reply" + SENT_AGAIN]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("found", ["55", None])
async def test_what_only_removes_a_lost_draft_says_nothing(found: str | None, again: bool) -> None:
    """Also at its second try, if a shutdown has cut the first one off."""
    channel = Looking(found)
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, replace(REPLY, text=""))
        (row,) = gateway.database.outbox.values()
        row.possible_duplicate = again
        await until(lambda: row.state is OutboxState.SENT)
    assert channel.sent == []
    assert channel.deleted == ({found} if found else set())
    assert again or channel.looks == [None]


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_stop_button_that_stops_nothing_is_removed_unless_the_message_is_known(
    is_known: bool,
) -> None:
    """SPEC IO-5: below a draft that was not found; a failure may have other buttons by now."""
    channel = Looking()
    async with a_process(channels=(channel,)) as gateway:
        await put(gateway, OutboundMessage(ANN, "a failure"))
        (row,) = gateway.database.outbox.values()
        await until(lambda: row.state is OutboxState.SENT)
        below = "1" if is_known else "55"
        pressed = replace(message("Stop"), press=stop_data(RunId("r1")), reply_to=below)
        await gateway.gateway.accept([pressed])
        await channel.until_sent(2)
        assert channel.texts() == ["a failure", "Nothing was running."]
        used = [one for one in channel.signals if isinstance(one, ButtonsUsed)]
        assert used == ([] if is_known else [ButtonsUsed(ANN, "55")])

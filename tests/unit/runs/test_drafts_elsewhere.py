"""Drafts of a gateway that was cut off before the database knew of them (SPEC CMD-3, IO-5, NODE-1).

Only that gateway knows which message they are; the message that they answer belongs to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Say, ScriptedAgent, Stream
from tests.support.drafting import DraftingChannel, outbox
from tests.support.harness import GatewayProcess, Ways, a_process, until

NARROW = Ways(QueuePolicy(), main_lane=1)
SLOW = Stream(tuple(f"{number} " for number in range(60)), every_s=1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A gateway that is cut off, and the one that has its work now."""

    first: GatewayProcess
    second: GatewayProcess
    shows: DraftingChannel
    """The channel of the first."""

    def said(self, text: str) -> list[str | None]:
        """In which drafts that was said, or None; any gateway sends what is due."""
        return [one.draft for one in self.shows.sent if one.text == text]


@asynccontextmanager
async def cut_off(
    second: ScriptedAgent, *, answer_s: float = 0.0, keeps: bool = False
) -> AsyncIterator[Cut]:
    """A gateway is cut off while it posts a draft for ann, until its message is taken over.

    Another one, whose only place bob has, has it then. ``answer_s`` is how long the channel takes
    to tell the id of the draft; ``keeps``: the database keeps that, and its answer is lost.
    """
    database, shows = MemoryDatabase(), DraftingChannel()
    beside = DraftingChannel().beside(shows)
    shows.answer_slow_s = answer_s
    slow = ScriptedAgent(otherwise=lambda _: SLOW)
    async with (
        a_process(slow, NARROW, database=database, channels=(shows,)) as first,
        a_process(second, NARROW, database=database, channels=(beside,)) as other,
    ):
        await other.say("busy", chat="bob")
        await second.until_active(1)
        if keeps:
            first.store.lose_answer["draft_posted"] = 1
        else:
            first.store.broken.add("draft_posted")
        await first.say("one")
        await until(lambda: bool(shows.asked))
        if keeps:
            await until(lambda: not first.store.lose_answer["draft_posted"])
        first.store.away = True
        await until(lambda: bool(other.recoveries), within_s=60)
        yield Cut(first, other, shows)


def admit(gateway: GatewayProcess) -> None:
    """The database can be reached again."""
    gateway.store.broken.clear()
    gateway.store.away = False


@pytest.mark.parametrize("answer_s", [0.0, 3.0])
async def test_the_draft_of_a_message_that_was_stopped_elsewhere_is_removed(
    answer_s: float,
) -> None:
    async with cut_off(ScriptedAgent(Block()), answer_s=answer_s) as cut:
        await asyncio.sleep(3)
        await cut.second.say("/stop")
        admit(cut.first)
        await until(lambda: cut.shows.deleted == {"draft-1"}, within_s=30)
        await asyncio.sleep(60)
        assert [row.message.text for row in await outbox(cut.second)] == ["", ""]


@pytest.mark.parametrize("keeps", [True, False])
async def test_the_run_of_another_gateway_finds_the_draft_of_its_message(*, keeps: bool) -> None:
    """SPEC IO-2, IO-5: the gateway that posted it has not heard so, and does not come between."""
    async with cut_off(ScriptedAgent(Block(), Say("done")), keeps=keeps) as cut:
        await cut.second.say("/stop", chat="bob")
        await until(lambda: cut.said("done") == ["draft-1"])
        admit(cut.first)
        await asyncio.sleep(60)
        assert cut.shows.deleted == set()


async def test_the_next_run_goes_on_in_the_draft_if_it_hears_of_it_in_time() -> None:
    async with cut_off(ScriptedAgent(Block(), Say("done"))) as cut:
        admit(cut.first)
        await asyncio.sleep(30)
        await cut.second.say("/stop", chat="bob")
        await until(lambda: bool(cut.said("done")))
        assert cut.said("done") == ["draft-1"]
        assert cut.shows.deleted == set()

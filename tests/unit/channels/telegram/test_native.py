"""``channels.telegram.native`` in virtual time (SPEC CHAN-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

from channels.telegram.client import ChatPlace
from channels.telegram.native import NativeDrafts
from goclaw_py.core.errors import NotSent, RateLimited, Undeliverable
from goclaw_py.core.ids import RunId
from tests.unit.channels.telegram.scripted import ScriptedClient

HERE = ChatPlace(7)
RUN = RunId("run")


@asynccontextmanager
async def drafting() -> AsyncIterator[tuple[ScriptedClient, NativeDrafts]]:
    client = ScriptedClient()
    drafts = NativeDrafts(client.send_draft)
    yield client, drafts
    await drafts.close()


async def test_a_draft_grows_at_most_once_a_second() -> None:
    async with drafting() as (client, drafts):
        for number in range(35):
            drafts.add(RUN, HERE, f"{number} ")
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert [round(one.at, 6) for one in client.drafts] == [0, 1, 2, 3, 4]
        assert client.drafts[0].what == "0 …"
        assert client.drafts[-1].what.startswith("0 1 2 ")
        assert client.drafts[-1].what.endswith(" 34 …")
        assert len({one.number for one in client.drafts}) == 1


async def test_a_slow_call_is_followed_by_a_whole_second_of_silence() -> None:
    async with drafting() as (client, drafts):
        client.takes_s["send_draft"] = 3.0
        for _ in range(20):
            drafts.add(RUN, HERE, "x")
            await asyncio.sleep(0.5)
        assert [one.at for one in client.drafts] == [0, 4, 8]
        assert client.most_active == 1


async def test_a_draft_that_says_nothing_new_is_shown_again_before_it_would_vanish() -> None:
    async with drafting() as (client, drafts):
        drafts.add(RUN, HERE, "thinking")
        await asyncio.sleep(100)
        at = [one.at for one in client.drafts]
        assert len(at) >= 4
        assert max(b - a for a, b in pairwise(at)) < 25


async def test_two_runs_have_two_drafts_and_one_that_ended_shows_nothing_more() -> None:
    async with drafting() as (client, drafts):
        drafts.add(RUN, HERE, "one")
        drafts.add(RunId("other"), HERE, "two")
        await asyncio.sleep(0.5)
        assert len({one.number for one in client.drafts}) == 2
        assert 0 not in {one.number for one in client.drafts}
        drafts.end(RUN)
        drafts.end(RUN)
        await asyncio.sleep(60)
        assert [one.what for one in client.drafts].count("one …") == 1
        assert [one.what for one in client.drafts].count("two …") > 2


async def test_a_draft_that_fails_slows_down_and_goes_on() -> None:
    async with drafting() as (client, drafts):
        client.fail("send_draft", NotSent("reset"), NotSent("reset"), RateLimited("slow", 30.0))
        for _ in range(100):
            drafts.add(RUN, HERE, "x")
            await asyncio.sleep(0.5)
        assert [one.at for one in client.drafts][:5] == [0, 2, 6, 36, 37]


async def test_a_draft_that_is_refused_is_given_up() -> None:
    async with drafting() as (client, drafts):
        client.fail("send_draft", Undeliverable("no drafts in this chat"))
        for _ in range(10):
            drafts.add(RUN, HERE, "x")
            await asyncio.sleep(1)
        assert len(client.drafts) == 1
        drafts.end(RUN)
        drafts.add(RunId("next"), HERE, "y")
        await asyncio.sleep(0.5)
        assert len(client.drafts) == 2


async def test_the_number_of_drafts_is_bounded() -> None:
    async with drafting() as (client, drafts):
        for number in range(1, 601):
            drafts.add(RunId(str(number)), ChatPlace(number), "x")
        await asyncio.sleep(0.5)
        assert len(client.drafts) == 500


async def test_closing_ends_what_is_under_way() -> None:
    async with drafting() as (client, drafts):
        client.takes_s["send_draft"] = 100.0
        drafts.add(RUN, HERE, "x")
        drafts.add(RunId("other"), HERE, "y")
        await asyncio.sleep(1)
        drafts.end(RUN)
        await drafts.close()
        assert len(asyncio.all_tasks()) == 1
        await asyncio.sleep(200)
        assert len(client.drafts) == 2


async def test_what_a_run_waits_for_stands_below_its_text_until_it_goes_on() -> None:
    """SPEC CHAN-14."""
    async with drafting() as (client, drafts):
        drafts.wait(RUN, HERE, "")
        assert client.drafts == []
        for line, text in (("waiting …", ""), ("", "one"), ("again …", ""), ("", " two")):
            drafts.wait(RUN, HERE, line)
            if text:
                drafts.add(RUN, HERE, text)
            await asyncio.sleep(2)
        shown = [one.what for one in client.drafts]
        assert shown == ["waiting …", "one …", "one\n\nagain …", "one two …"]

"""The benchmark of Telegram runs to its end; nothing here is timed."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from bench.telegram import __main__ as telegram
from bench.telegram import rates
from bench.telegram.agent import HOLD, answer_to
from bench.telegram.crowd import FIRST, FLOODER, SOMEBODY, Flooded, crowd
from bench.telegram.crowd import flood as flood_there
from bench.telegram.crowd import write as write_there
from bench.telegram.flood import CAPACITY, check
from bench.telegram.gateways import CASES, Case, Mode, floor_for
from bench.telegram.processes import address_of, own_cpu_s, proportional_mb, server_of
from bench.telegram.rates import Load, Rates
from bench.telegram.sampled import OTHER, Sampler, Stack, read, shares, write
from channels.telegram.settings import Library
from goclaw_py.chat.outbound.texts import dropped
from goclaw_py.core.outcomes import Reason
from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.pool import Row
from tests.botapi import BotApi
from tests.botapi.caller import Wire
from tests.support.process import wait_for
from tests.unit.bench.reports import wanted

pytestmark = pytest.mark.real_time

TINY = replace(telegram.QUICK, load=Load(2, 3), flood=CAPACITY + 5, requests=2)


def sizes(library: Library, mode: Mode) -> telegram.Sizes:
    return replace(TINY, cases=(Case(library, mode),))


def test_both_libraries_and_both_ways_of_receiving_are_measured() -> None:
    assert {(case.library, case.mode) for case in CASES} == {
        (library, mode) for library in Library for mode in Mode
    }
    assert (telegram.Sizes().load.chats, telegram.Sizes().load.each) == (500, 20)
    assert telegram.Sizes().cases == CASES


def test_every_message_is_answered_and_counted() -> None:
    report = telegram.answering(sizes(Library.AIOGRAM, Mode.WEBHOOK))
    (line,) = report.lines
    assert line.label == "aiogram, webhook"
    assert [*wanted(report).values()] == ["≥ 300", "≤ 3", "≤ 5"]
    found = {figure.name: figure.median for figure in line.figures}
    assert found["answered"] > 0
    assert found["memory before"] > 10
    assert found["calls"] >= 1
    assert found["WAL"] > 1


def test_each_case_is_compared_with_the_floor_of_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    floor = Rates(1_000.0, 0.5, 0.25, 0.5, 1.0, 30, 40, {"sendMessage": 1.0})
    slow = Rates(250.0, 1.5, 1.0, 0.5, 5.0, 100, 150, {"sendMessage": 1.0})
    monkeypatch.setattr(rates, "measure_floor", lambda _load: floor)
    monkeypatch.setattr(rates, "measure", lambda _case, _load: slow)
    two = replace(sizes(Library.PTB, Mode.POLLING), load=Load(), rounds=2)
    report = telegram.beside_floor(two)
    assert [line.label for line in report.lines] == [
        "floor",
        "python-telegram-bot, polling",
        "python-telegram-bot, polling / floor",
    ]
    assert {figure.name: figure.values for figure in report.lines[-1].figures} == {
        "answered": [0.25, 0.25],
        "gateway's CPU": [3.0, 3.0],
        "database's": [4.0, 4.0],
        "WAL": [5.0, 5.0],
    }
    assert {name: bound for (label, name), bound in wanted(report).items() if "floor" in label} == {
        "gateway's CPU": "≤ 3",
        "database's": "≤ 3",
    }


_STORED = """
select (select array_agg(text order by chat, id) from history) as said,
  (select count(*) from inbox) as inbox, (select count(*) from runs) as runs,
  (select count(*) from outbox where sent_at is not null) as sent
"""


async def stored(address: Address) -> Row:
    async with connection(address) as one:
        found = await one.row(_STORED)
    assert found is not None
    return found


def test_the_floor_stores_and_sends_each_message_once_and_in_order() -> None:
    with crowd() as people, floor_for(people) as (_, state):
        people.write(chats=3, each=4)
        address = address_of(state)
        # The last replies are marked a moment after people have them.
        wait_for(lambda: asyncio.run(stored(address))["sent"] >= 12, "the marks")
        found = asyncio.run(stored(address))
    prompts = [f"Message {number}" for _ in range(3) for number in range(4)]
    assert found["said"] == [text for prompt in prompts for text in (prompt, answer_to(prompt))]
    assert (found["inbox"], found["runs"], found["sent"]) == (12, 12, 12)


def test_a_flood_leaves_the_first_message_and_the_last_ones() -> None:
    report = telegram.flooding(sizes(Library.PTB, Mode.POLLING))
    (line,) = report.lines
    assert {name: bound for (_, name), bound in wanted(report).items()} == {
        "confirmed after": "< 10",
        "another user's answer": "< 2",
        "growth": "< 50",
    }
    notices = line.figures[-1]
    assert notices.name == "notices"
    assert notices.median >= 1


def test_a_request_is_waited_for_with_and_without_the_window() -> None:
    """SPEC QUEUE-6."""
    report = telegram.requesting(TINY)
    assert [line.label for line in report.lines] == ["fixed", "speculative"]
    assert [*wanted(report).values()] == ["≤ 10", "≤ 30"]
    (fixed, _), (speculative, _) = (line.figures for line in report.lines)
    assert fixed.median >= 800 > speculative.median > 0


def test_a_gateway_tells_what_it_works_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telegram, "_LEAST", 0.0)
    tiny = replace(sizes(Library.PTB, Mode.POLLING), load=Load(10, 10))
    (line,) = telegram.profiles(tiny).lines
    calling, *each = line.figures
    assert 0 < calling.median < 100
    assert sum(figure.median for figure in each) == pytest.approx(100)
    assert len(each) >= 3


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with BotApi() as api, aiohttp.ClientSession() as session:
        yield Wire(api, session)


async def test_a_wrong_answer_is_found_out(wire: Wire) -> None:
    writing = asyncio.create_task(write_there(wire.api, chats=1, each=1))
    await asyncio.sleep(0)
    await wire.result("sendMessage", chat_id=FIRST, text="Hello yourself")
    with pytest.raises(ValueError, match=r"was answered .*Hello yourself"):
        await writing


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (dropped(["one", "two"], Reason.QUEUE_DROPPED), "told of 2 messages, not 1"),
        ("Good morning", "this is no notice: Good morning"),
    ],
)
async def test_a_wrong_notice_is_found_out(wire: Wire, said: str, complaint: str) -> None:
    flooding = asyncio.create_task(flood_there(wire.api, messages=2, dropped=1))
    await asyncio.sleep(0)
    wire.api.world.updates.drop()
    await wire.result("sendMessage", chat_id=SOMEBODY, text=answer_to("Hello"))
    await wire.result("sendMessage", chat_id=FLOODER, text=said)
    with pytest.raises(ValueError, match=complaint):
        await flooding


def test_what_goes_wrong_among_people_is_told() -> None:
    with crowd() as people:
        assert people.pid != os.getpid()
        with pytest.raises(RuntimeError, match="no such task"):
            people._ask(do="dance")


def answers(numbers: list[int]) -> list[str]:
    return [answer_to(f"{HOLD} {number}") for number in numbers]


KEPT = [0, *range(90, 100)]


@pytest.mark.parametrize("numbers", [KEPT[:-1], [*KEPT, 100], [0, 1, *KEPT[2:]], [*KEPT[::-1]]])
def test_other_answers_break_the_queue_rule(numbers: list[int]) -> None:
    check(Flooded(1, 1, [1.0, 11.0]), answers(KEPT), 100)
    with pytest.raises(RuntimeError, match="not the first and the last"):
        check(Flooded(1, 1, [1.0]), answers(numbers), 100)


def test_notices_that_come_too_often_break_the_queue_rule() -> None:
    with pytest.raises(RuntimeError, match=r"4\.0 s apart"):
        check(Flooded(1, 1, [1.0, 12.0, 16.0]), answers(KEPT), 100)


def test_code_of_others_counts_for_its_caller() -> None:
    ours, theirs = "/x/goclaw_py/chat/inbound/chat_run.py", "/x/site-packages/telegram/_bot.py"
    json, loop = "/usr/lib/python3/json/decoder.py", "/usr/lib/python3/asyncio/runners.py"
    stacks: Counter[Stack] = Counter()
    stacks[(loop, "run"), (ours, "work"), (json, "decode")] = 2
    stacks[(loop, "run"), (ours, "work"), (theirs, "post"), (json, "decode")] = 1
    stacks[(loop, "run"),] = 1
    assert shares(stacks) == {"chat/inbound": 0.5, "library": 0.25, OTHER: 0.25}


def test_samples_are_taken_of_what_works_and_can_be_stored(tmp_path: Path) -> None:
    sampler = Sampler()
    sampler.begin()
    end = time.process_time() + 0.2
    while time.process_time() < end:
        sum(range(1_000))
    found = sampler.end()
    assert found
    names = {name for stack in found for _, name in stack}
    assert "test_samples_are_taken_of_what_works_and_can_be_stored" in names
    write(tmp_path / "stacks.json", found)
    assert read(tmp_path / "stacks.json") == found


def test_cpu_and_memory_of_a_process_are_told() -> None:
    begin = own_cpu_s(os.getpid())
    while own_cpu_s(os.getpid()) - begin < 0.02:
        sum(range(100_000))
    assert 5 < proportional_mb(os.getpid()) < 10_000


def test_a_gateway_without_an_embedded_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no embedded database"):
        server_of(tmp_path)

"""``channels.telegram.outage``: pauses that grow, and few words in the log."""

from __future__ import annotations

import asyncio

import pytest

from channels.telegram.outage import Outage
from tests.unit.channels.telegram.scripted import logged


def outage(longest_pause_s: float = 32.0) -> Outage:
    return Outage("Telegram cannot be reached", "default", longest_pause_s)


async def test_pauses_double_up_to_the_longest_and_begin_again_after_the_end() -> None:
    trouble = outage()
    assert [trouble.again("x") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 32, 32]
    trouble.over()
    assert trouble.again("x") == 1


async def test_ten_thousand_failures_do_not_overflow_the_pause() -> None:
    trouble = outage()
    assert {trouble.again("x") for _ in range(10_000)} == {1, 2, 4, 8, 16, 32}


async def test_the_sentence_tells_how_long_and_why_and_ends_with_the_trouble() -> None:
    trouble = outage()
    assert trouble.sentence == ""
    trouble.again("no route")
    await asyncio.sleep(90)
    trouble.again("no connection")
    assert trouble.sentence == "Telegram cannot be reached, for 2 min now: no connection"
    trouble.over()
    assert trouble.sentence == ""


async def test_only_begin_and_end_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """SPEC CHAN-8: no log flood."""
    trouble = outage()
    with logged(caplog) as lines:
        for _ in range(500):
            trouble.again("no route")
            await asyncio.sleep(1)
        trouble.over()
        trouble.over()
    assert lines == [
        "WARNING channel_outage_started Telegram cannot be reached",
        "INFO channel_outage_ended Telegram cannot be reached",
    ]
    warning, end = caplog.records
    assert vars(warning)["account"] == vars(end)["account"] == "default"
    assert (vars(warning)["error"], vars(end)["duration_s"]) == ("no route", 500)


async def test_a_trouble_that_comes_and_goes_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    trouble = outage()
    with logged(caplog) as lines:
        for _ in range(1800):
            trouble.again("reset")
            assert trouble.sentence
            await asyncio.sleep(1)
            trouble.over()
            assert not trouble.sentence
            await asyncio.sleep(1)
    assert len(lines) == 2 * 12
    assert lines[0].startswith("WARNING channel_outage_started")
    assert lines[-1].startswith("INFO channel_outage_ended")


async def test_a_trouble_that_comes_back_and_stays_is_logged_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = outage()
    with logged(caplog) as lines:
        trouble.again("reset")
        trouble.over()
        for _ in range(301):
            trouble.again("down")
            await asyncio.sleep(1)
        trouble.over()
    assert [line.split()[0] for line in lines] == ["WARNING", "INFO"] * 2

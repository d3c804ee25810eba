"""``goclaw stop``: what it says of a stop (SPEC CMD-2, OPS-1)."""

from __future__ import annotations

import pytest

from goclaw_py.operations.sessions.command import stop_text
from goclaw_py.scheduler.views import StopReport
from tests.unit.web import fakes


@pytest.mark.parametrize(("report", "words"), [
    (StopReport((fakes.RUN_ID,), ()), "stopped 0190-aaaa\n"),
    (StopReport((fakes.RUN_ID,), (fakes.RUN_ID,)), "stopped 0190-aaaa; dropped 1 waiting\n"),
    (StopReport(already_stopping=True), "already stopping\n"),
    (StopReport(), "nothing was running\n"),
    (StopReport(unsent=1), "dropped 1 unsent part of an answer\n"),
    (
        StopReport((fakes.RUN_ID,), unsent=2),
        "stopped 0190-aaaa; dropped 2 unsent parts of an answer\n",
    ),
])  # fmt: skip
def test_stop_says_what_it_did(report: StopReport, words: str) -> None:
    assert stop_text(report) + "\n" == words

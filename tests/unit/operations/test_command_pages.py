"""What a command shows or does, a page shows or does as well (SPEC OPS-3)."""

from __future__ import annotations

import pytest

from goclaw_py.operations.command_pages import page_of
from goclaw_py.operations.explanation import Cure


@pytest.mark.parametrize(("command", "page"), [
    ("goclaw why", "/why"), ("goclaw why run:0190", "/why?about=run%3A0190"),
    ("goclaw stop agent:main:web", "/sessions/view?key=agent%3Amain%3Aweb"),
    ("goclaw jobs edit 0190 --every 1d", "/jobs/0190/edit"),
    ("goclaw deliveries incoming retry 7", "/deliveries#in-7"),
    ("goclaw heartbeat add --agent ops 'every 2h: look'", "/heartbeats/ops"),
    ("goclaw why 'a&b=\"c\"'", "/why?about=a%26b%3D%22c%22"),
    ("goclaw people groups list", "/people"), ("goclaw deliveries list", "/deliveries"),
    ("goclaw lanes set main 3", ""), ("goclaw run", ""), ("timedatectl set-ntp true", ""),
])  # fmt: skip
def test_a_command_has_the_page_that_does_the_same(command: str, page: str) -> None:
    assert page_of(command) == page
    assert Cure("Do it", command).link == page


def test_a_cure_may_name_another_page_than_that_of_its_command() -> None:
    assert Cure("Cancel it", "goclaw deliveries drop 7", "/deliveries?show=waiting").link == (
        "/deliveries?show=waiting"
    )

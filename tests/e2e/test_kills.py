"""Kills during runs that pay, in short; ``make chaos-kills`` does many more (SPEC AGENT-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills.script import Moment
from tests.chaos.kills.stage import Size, play


@pytest.mark.real_time
@pytest.mark.parametrize("nodes", [1, 2])
def test_kills_repeat_no_effect_and_no_paid_request(
    tmp_path: Path, postgres_url: str, nodes: int
) -> None:
    played = play("short", Size(kills=len(Moment), nodes=nodes), postgres_url, tmp_path)
    assert played.breaches == [], "\n".join(played.lines())
    # What is checked was there. On a machine that is very busy a moment may not come.
    assert sum(kill.hit for kill in played.kills) >= len(Moment) - 2
    history = played.facts.history
    assert any(asked.attempt > 1 for asked in history.requests)
    assert any(start.tool == "pay" for start in history.starts)
    assert any(attempts > 1 for _, attempts in played.facts.outcomes.values())

"""Kills during runs that pay, in short; ``make chaos-kills`` does many more (SPEC AGENT-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills.stage import Size, play

KILLS = 6


@pytest.mark.real_time
@pytest.mark.parametrize("nodes", [1, 2])
def test_kills_repeat_no_effect_and_no_paid_request(
    tmp_path: Path, postgres_url: str, nodes: int
) -> None:
    # On a machine that is very busy some moments take their time.
    size = Size(kills=KILLS, nodes=nodes, patience_s=60.0)
    played = play(f"short{nodes}", size, postgres_url, tmp_path)
    assert played.breaches == [], "\n".join(played.lines())
    # What is checked was there.
    assert len(played.kills) == KILLS
    assert any(kill.hit for kill in played.kills)
    assert any(asked.attempt > 1 for asked in played.facts.history.requests)
    assert any(start.tool == "pay" for start in played.facts.history.starts)
    assert any(attempts > 1 for _, attempts in played.facts.outcomes.values())

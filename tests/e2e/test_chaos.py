"""``kill -9`` under Telegram, in short; ``make chaos`` plays many more rounds (SPEC IO-2, IO-5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from channels.telegram.settings import Library
from tests.chaos.report import breaches
from tests.chaos.rounds import Combination, Mode, stage
from tests.chaos.script import Size, Trigger, script

SEED = "short"
SMALL = Size(people=2, messages=2, second_kills=0.0, longest_s=1.3)
PTB, AIOGRAM = Library.PTB, Library.AIOGRAM
# Fewer over aiogram: each start imports it, which takes seconds.
CASES = [
    (PTB, Mode.POLLING, [Trigger.UNCONFIRMED, Trigger.POST_AFTER, Trigger.FINAL_AFTER]),
    (PTB, Mode.WEBHOOK, [Trigger.ENDED, Trigger.SEND_AFTER, Trigger.STOPPED]),
    (AIOGRAM, Mode.WEBHOOK, [Trigger.POST_BEFORE]),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("library", "mode", "moments"), CASES)
def test_nobody_notices_a_kill(
    tmp_path: Path, postgres_url: str, library: Library, mode: Mode, moments: Sequence[Trigger]
) -> None:
    """Each message one answer, in order, none twice without a record, nothing left half done."""
    combination = Combination(library, mode)
    with stage(tmp_path / "home", postgres_url, combination) as opened:
        rounds = [
            opened.play(script(SEED, number, moment, SMALL))
            for number, moment in enumerate(moments)
        ]
        for played in rounds:
            told = "\n".join(breaches(combination, played, "this test"))
            assert played.verdict.violations == (), told
            assert opened.again(played).violations == (), told
    # On a machine that is very busy a moment may not come.
    assert sum(played.hit for played in rounds) >= len(rounds) - 1

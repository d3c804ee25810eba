"""Random histories and the simulation try every queue mode (SPEC QUEUE-3)."""

from __future__ import annotations

from goclaw_py.scheduler.models import Mode
from tests.property import histories
from tests.simulation.plan import plan


def test_random_histories_have_every_mode() -> None:
    assert {mode for one in histories.SETTINGS for mode in one.modes} == set(Mode)


def test_simulated_clusters_have_every_mode() -> None:
    assert {plan(seed).mode for seed in range(50)} == set(Mode) - {Mode.FOLLOWUP}

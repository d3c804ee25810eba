"""The comparison with the naive scheduler finds faults: each planted one, within few histories."""

from __future__ import annotations

from random import Random

import pytest

from tests.property.faults import FAULTS, Fault, plant
from tests.property.histories import CHATS, SETTINGS, STEP_BYTES, Setting
from tests.property.pair import Core, Pair

HISTORIES = 150
"""A fault must show in one of so many."""

STEPS = 60


def live_through(core: Core, setting: Setting, seed: int) -> None:
    """Always the same history for a seed. Raises ``AssertionError`` where both differ."""
    random = Random(seed)
    sizes = random.randbytes(8)
    history = [random.randbytes(STEP_BYTES) for _ in range(STEPS)]
    Pair(setting, core, sizes).live_through(history)


def first_to_show(fault: Fault) -> int | None:
    core = plant(fault)
    for seed in range(HISTORIES):
        try:
            live_through(core, fault.setting, seed)
        except AssertionError:
            return seed
    return None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_shows(fault: Fault) -> None:
    assert first_to_show(fault) is not None


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_core_with_no_fault_planted_shows_none(setting: Setting) -> None:
    core = plant(None)
    for seed in range(10):
        live_through(core, setting, seed)


def test_a_fault_whose_text_is_gone_is_an_error() -> None:
    gone = Fault("gone", CHATS, "state_machine", "no line of the code reads like this", "")
    with pytest.raises(LookupError, match="0 times in"):
        plant(gone)


def test_a_fault_in_a_module_that_the_scheduler_does_not_use_is_an_error() -> None:
    elsewhere = Fault("elsewhere", CHATS, "commands", "", "")
    with pytest.raises(LookupError, match="no part of the scheduler"):
        plant(elsewhere)

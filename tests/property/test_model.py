"""The scheduler does what the naive one does: the same effects, states and numbers at every step.

The naive one is in ``naive``; what happens in the histories is in ``histories``.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.histories import SETTINGS, STEP_BYTES, Setting
from tests.property.pair import Pair

MIN_STEPS = 60
MAX_STEPS = 120
PARTS = 4
"""Each part is a test, so that several processors share the work and memory does not grow."""

sizes = st.binary(min_size=8, max_size=8)
histories = st.lists(
    st.binary(min_size=STEP_BYTES, max_size=STEP_BYTES), min_size=MIN_STEPS, max_size=MAX_STEPS
)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
@settings(max_examples=settings().max_examples // PARTS)
@given(sizes=sizes, history=histories)
def test_the_scheduler_tells_in_every_history_what_the_naive_one_tells(
    setting: Setting, part: int, sizes: bytes, history: list[bytes]
) -> None:
    """SPEC LANE-1 to LANE-9, QUEUE-1 to QUEUE-12.

    Every history ends with all runs ending that wait for nobody: whatever waits must get its turn
    without help of a time limit. So a deadlock shows, of "patient parents" above all, which wait
    for their children before they end.

    For each of eight settings all parts live through as many histories as the profile says: 100, or
    4,000 in ``deep``, which are 32,000 together.
    """
    Pair(setting, sizes=sizes).live_through(history)

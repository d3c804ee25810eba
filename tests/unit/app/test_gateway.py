"""The chat in front of a gateway that ends with it (SPEC CHAN-9, QUEUE-11)."""

from __future__ import annotations

from typing import cast

import pytest

from goclaw_py.app.gateway import Signals
from goclaw_py.chat.terminals import Terminals
from goclaw_py.operations.control import Control


@pytest.mark.parametrize("has_waited", [True, False, None])
async def test_a_chat_that_has_waited_long_enough_ends_the_gateway_at_once(
    has_waited: bool | None,
) -> None:
    """goclaw chat --wait 1 does not wait 30 s more for a run whose answer nobody reads."""
    signals = Signals()

    async def front(_control: Control, _terminals: Terminals) -> bool | None:
        return has_waited

    with signals.caught():
        await signals.behind(front)(cast("Control", None), cast("Terminals", None))
    assert signals.stop.is_set()
    assert signals.hurry.is_set() is bool(has_waited)

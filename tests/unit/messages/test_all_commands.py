"""Every command that the menu offers is answered (SPEC CMD-5)."""

from __future__ import annotations

import pytest

from goclaw_py.delivery import texts
from goclaw_py.model.chat_commands import NAMES
from tests.support.harness import a_process


@pytest.mark.parametrize("name", NAMES)
async def test_a_command_of_the_menu_is_answered(name: str) -> None:
    async with a_process() as gateway:
        assert await gateway.ask(f"/{name}") not in ("", texts.FAILED)

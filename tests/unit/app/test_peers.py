"""Which settings are to be the same on all nodes (SPEC NODE-1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from goclaw_py.app.cluster_settings import settings_digest
from goclaw_py.config import Settings
from goclaw_py.config.lanes import LaneSettings
from goclaw_py.config.models import DatabaseSettings, Log, LogLevel, State
from goclaw_py.config.show import shown
from goclaw_py.config.web import Web


def digest_of(settings: Settings) -> Mapping[str, str]:
    return settings_digest(shown(settings))


def test_equal_settings_have_equal_digests() -> None:
    assert digest_of(Settings()) == digest_of(Settings())


def test_only_the_section_that_differs_differs() -> None:
    one, other = digest_of(Settings()), digest_of(Settings(lanes={"main": LaneSettings(size=7)}))
    assert {key for key in one if one[key] != other[key]} == {"lanes"}


def test_where_a_node_is_and_what_it_writes_is_its_own_affair() -> None:
    own = Settings(
        home=Path("/elsewhere"),
        database=DatabaseSettings(url=SecretStr("postgresql://h/d")),
        log=Log(level=LogLevel.DEBUG),
        state=State(folder=Path("/var/tmp/x")),
        web=Web(port=9000),
    )
    assert digest_of(own) == digest_of(Settings())

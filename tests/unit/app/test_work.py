"""Sources of work, made from settings (SPEC CRON-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.app.gateway_config import build_sources
from goclaw_py.config import load
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import JobId
from goclaw_py.records import NewWork
from goclaw_py.schedule.sources.github import GitHubSource
from goclaw_py.testing.clock import LoopClock
from tests.support.memory_store import MemoryStore

TEXT = """
[sources.chores]
kind = "table"
[sources.more]
kind = "table"
queue = "other"
[sources.bugs]
kind = "github"
repo = "acme/shop"
token_env = "SHOP_TOKEN"
"""


async def test_each_source_is_made_by_its_kind(tmp_path: Path) -> None:
    """A table's queue has the name of the source unless it is named."""
    (tmp_path / "goclaw.toml").write_text(TEXT)
    settings, store, clock = load(env={"GOCLAW_HOME": str(tmp_path)}), MemoryStore(), LoopClock()
    for queue in ("chores", "other"):
        await store.add_work(NewWork(queue, f"of {queue}"), now=clock.now())
    found = build_sources(settings, store, clock, {"SHOP_TOKEN": "secret"})
    assert list(found) == ["chores", "more", "bugs"]
    assert isinstance(found["bugs"], GitHubSource)
    titles = []
    for name in ("chores", "more"):
        item = await found[name].claim(JobId("job"))
        titles.append(item and item.title)
    assert titles == ["of chores", "of other"]


async def test_a_token_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "goclaw.toml").write_text(TEXT)
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    with pytest.raises(SettingError, match=r"sources\.bugs\.token_env = 'SHOP_TOKEN'"):
        build_sources(settings, None, LoopClock(), {})


async def test_settings_are_checked_without_a_store(tmp_path: Path) -> None:
    """As ``goclaw config check`` does, before there is a database."""
    (tmp_path / "goclaw.toml").write_text(TEXT)
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    assert list(build_sources(settings, None, LoopClock(), {"SHOP_TOKEN": "secret"})) == ["bugs"]

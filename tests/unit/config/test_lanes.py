"""``[lanes]``: sizes, and whose runs they count (SPEC LANE-1, NODE-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import Settings, load
from goclaw_py.model.errors import SettingError
from goclaw_py.model.ids import CRON_LANE, MAIN_LANE, LaneName


def settings(folder: Path, text: str, **env: str) -> Settings:
    (folder / "goclaw.toml").write_text(text, encoding="utf-8")
    return load(None, {"GOCLAW_HOME": str(folder), **env})


def refused(folder: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingError) as caught:
        settings(folder, text, **env)
    return str(caught.value)


def test_jobs_count_on_all_nodes_together_and_everything_else_on_each(tmp_path: Path) -> None:
    assert settings(tmp_path, "").shared_lanes == Settings().shared_lanes == {CRON_LANE}


def test_a_number_and_a_table_say_the_same(tmp_path: Path) -> None:
    number = settings(tmp_path, "[lanes]\nmain = 3\ncron = 2\n")
    table = settings(tmp_path, "[lanes.main]\nsize = 3\n[lanes]\ncron = { size = 2 }\n")
    assert number.lanes == table.lanes
    assert (table.lane_sizes[MAIN_LANE], table.lane_sizes[CRON_LANE]) == (3, 2)


def test_each_lane_can_have_its_scope(tmp_path: Path) -> None:
    text = '[lanes]\nmain = { scope = "cluster" }\ncron = { scope = "node" }\n[lanes.fast]\n'
    got = settings(tmp_path, text + 'size = 7\nscope = "cluster"\n')
    assert got.shared_lanes == {MAIN_LANE, LaneName("fast")}
    # What is not said stays as it is.
    assert (got.lane_sizes[MAIN_LANE], got.lane_sizes[CRON_LANE]) == (2, 1)


@pytest.mark.parametrize("variable", ["GOCLAW_LANE_MAIN", "GOCLAW_LANES__MAIN"])
def test_a_variable_changes_the_size_and_leaves_the_scope(tmp_path: Path, variable: str) -> None:
    got = settings(tmp_path, '[lanes.main]\nsize = 3\nscope = "cluster"\n', **{variable: "9"})
    assert got.lane_sizes[MAIN_LANE] == 9
    assert MAIN_LANE in got.shared_lanes


def test_a_variable_can_set_the_scope(tmp_path: Path) -> None:
    got = settings(tmp_path, "[lanes]\ncron = 4\n", GOCLAW_LANES__CRON__SCOPE="node")
    assert (got.shared_lanes, got.lane_sizes[CRON_LANE]) == (frozenset(), 4)


@pytest.mark.parametrize("lane", ["subagent", "delegate"])
def test_lanes_of_children_are_never_shared(tmp_path: Path, lane: str) -> None:
    """Their parents hold places while they wait for them."""
    line = refused(tmp_path, f'[lanes.{lane}]\nscope = "cluster"\n')
    assert f"lanes.{lane}.scope" in line
    assert "must be node" in line


@pytest.mark.parametrize(("text", "expected"), [
    ('[lanes.main]\nscope = "world"\n', "lanes.main.scope"),
    ("[lanes.main]\nsise = 3\n", "did you mean size?"),
    ('[lanes.fast]\nscope = "node"\n',
     "lanes.fast.size = (missing): is required: the maximum number of concurrent runs"),
    ("[lanes.fast]\nsise = 3\n", "did you mean size?"),
    ("[lanes]\nmain = [1]\n", "lanes.main.size"),
    ("[lanes.main]\nsize = 0\n", "lanes.main.size = 0: must be a whole number, at least 1"),
    ("lanes = 3\n", "must be a table"),
])  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)

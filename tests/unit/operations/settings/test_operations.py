"""Settings that are edited while gateways run (SPEC OPS-11)."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.app.apply_settings import SettingsApplier
from goclaw_py.app.banner import banner
from goclaw_py.app.gateway_config import gateway_dependencies, heartbeat_setup, job_setup, scheduler
from goclaw_py.app.parts import build_parts
from goclaw_py.config import load
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import SettingChanged, SettingError, StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT, AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import CONSOLE
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.operations.settings.live import LiveSettings
from goclaw_py.operations.settings.models import EditableSetting, OriginKind, Setting, SettingChange
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import NewSettingEdit
from goclaw_py.records.bound import bind
from goclaw_py.scheduler.models import Mode
from goclaw_py.scheduler.views import RunState, RunView
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.memory_store import MemoryDatabase

FILE = """
[lanes]
main = 3
[agents.main]
fallback = []
[agents.main.budget]
turns = 20
[agents.helper]
model = "offline"
[agents.helper.command]
run = ["true"]
[channels.telegram]
token = "TOKEN"
"""
TOKEN = "123456789:" + "AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr"
HELPER = AgentName("helper")
GROUP = Target("telegram", "default", "-100")


class Node:
    """A gateway as the process builds it, without sockets."""

    def __init__(self, folder: Path, database: MemoryDatabase, text: str, **env: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "goclaw.toml").write_text(text.replace("TOKEN", TOKEN))
        settings = load(env={"GOCLAW_HOME": str(folder), **env})
        self.store = FlakyStore(database)
        clock = LoopClock()
        self.parts = build_parts(settings)
        made = gateway_dependencies(settings, self.parts)
        jobs = job_setup(settings, self.store, clock)
        self.deps = GatewayDependencies(
            made.channels,
            made.rules,
            made.agents,
            made.workspaces,
            made.context_windows,
            made.tool_factory,
            limits=made.limits,
            models=made.models,
            jobs=jobs,
            heartbeats=heartbeat_setup(settings),
        )
        self.container = Container(
            bind(self.store, lambda: NodeId("n1")), clock, scheduler(settings), self.deps
        )
        self.applier = applier = SettingsApplier(settings, self.deps, self.container)
        self.trouble = ""
        self.live = LiveSettings(settings, self.store, applier)
        self.settings = SettingsService(self.live, self.store, clock, lambda: self.trouble)

    async def set(self, path: str, value: str | None, version: int | None = None) -> None:
        await self.settings.change([SettingChange(path, value, version)], source="dashboard")

    async def setting(self, path: str) -> Setting:
        view = await self.settings.view()
        return next(one for one in view.settings if one.path == path)

    async def editable(self, path: str) -> EditableSetting:
        view = await self.settings.view()
        return next(one for one in view.editable if one.path == path)

    def lane(self, name: str) -> int:
        return self.container.dispatcher.lane_load(LaneName(name)).concurrency


@pytest.fixture
async def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
async def node(tmp_path: Path, database: MemoryDatabase) -> Node:
    return Node(tmp_path / "one", database, FILE)


@asynccontextmanager
async def running(*nodes: Node) -> AsyncIterator[None]:
    """Follow the database on these nodes."""
    tasks = [asyncio.create_task(node.live.run()) for node in nodes]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---------------------------------------------------------------------- what an edit changes


async def test_lanes_and_limits_change_at_once(node: Node) -> None:
    await node.set("lanes.main.size", "1")
    await node.set("agents.main.max_concurrent", "2")
    assert node.lane("main") == 1
    assert node.deps.jobs.limits == {MAIN_AGENT: 2}
    await node.set("agents.main.max_concurrent", None)
    await node.set("lanes.main.size", None)
    assert (node.lane("main"), node.deps.jobs.limits) == (3, {})


async def test_a_lane_that_was_resized_by_hand_keeps_its_size(node: Node) -> None:
    node.container.dispatcher.resize_lane(LaneName("cron"), 7)
    await node.set("lanes.main.size", "9")
    assert (node.lane("main"), node.lane("cron")) == (9, 7)


async def test_only_the_agent_whose_model_changes_is_built_again(node: Node) -> None:
    main, helper = node.deps.agents[MAIN_AGENT], node.deps.agents[HELPER]
    await node.set("agents.helper.model", "command")
    await node.set("agents.helper.context_window", "5000")
    assert node.deps.agents[MAIN_AGENT] is main
    assert type(node.deps.agents[HELPER]) is not type(helper)
    assert node.deps.context_windows[HELPER] == 5000
    assert node.applier.models[HELPER] == "command"


async def test_a_model_without_a_key_is_a_problem(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(one, raising=False)
    assert list(node.applier.warnings()) == []
    await node.set("agents.helper.model", "openai:gpt-4o")
    (warning,) = node.applier.warnings()
    assert str(warning) == (
        "Agent helper cannot ask openai:gpt-4o: no API key is set; "
        "set OPENAI_API_KEY, or agents.helper.api_key_file, and restart"
    )
    settings = node.live.current
    parts = build_parts(settings)
    lines = banner(settings, parts, "1.0", node.applier.unusable, chats_here=False)
    (line,) = (line for line in lines if "helper" in line)
    assert line.endswith(
        "helper: openai:gpt-4o  (cannot answer: no API key is set; "
        "set OPENAI_API_KEY, or agents.helper.api_key_file)"
    )
    await node.set("agents.helper.model", None)
    assert list(node.applier.warnings()) == []


async def test_chats_are_shown_the_model_in_force(node: Node) -> None:
    """``/status``; programs and functions are nobody's business there."""
    assert HELPER not in node.deps.models
    for model, shown in (("openai:gpt-4o", "openai:gpt-4o"), ("command", None)):
        await node.set("agents.helper.model", model)
        assert node.deps.models.get(HELPER) == shown


class Loop(OfflineAgent):
    """Remembers whether it was closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True


async def test_a_replaced_agent_is_closed_when_its_runs_have_ended(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in progress keeps its agent."""
    old = Loop()
    assert isinstance(node.deps.agents, dict)
    node.deps.agents[HELPER] = old
    state, lane = RunState.RUNNING, LaneName("main")
    run = RunView(RunId("r1"), SessionKey("s"), HELPER, lane, state, 1.0)
    runs = [run]
    monkeypatch.setattr(node.container.dispatcher, "runs", lambda: tuple(runs))
    async with running(node):
        await node.set("agents.helper.model", "command")
        await asyncio.sleep(60)
        assert not old.closed
        runs.clear()
        await asyncio.sleep(10)
        assert old.closed


async def test_budgets_change(node: Node) -> None:
    await node.set("agents.main.budget.turns", "7")
    await node.set("agents.main.budget.day.usd", "2.5")
    limits = node.deps.limits[MAIN_AGENT]
    assert (limits.run, str(limits.agent_day.usd)) == (Budget(turns=7), "2.5")


async def test_rules_of_chats_change_also_those_of_a_new_one(node: Node) -> None:
    rules = node.container.policies.rules
    chat = 'channels.telegram.chats."-100"'
    await node.settings.change(
        [
            SettingChange(f"{chat}.agent", "helper"),
            SettingChange(f"{chat}.mention", "no"),
            SettingChange(f"{chat}.queue.mode", "steer"),
            SettingChange("channels.telegram.context_messages", "3"),
            SettingChange("channels.console.mention", "false"),
        ],
        source="API",
    )
    there = rules(GROUP)
    assert (there.agent, there.access.mention, there.access.listed) == (HELPER, False, True)
    assert (there.group.mode, there.context_messages) == (Mode.STEER, 3)
    elsewhere = rules(Target("telegram", "default", "7"))
    assert (elsewhere.agent, elsewhere.group.mode) == (MAIN_AGENT, Mode.QUEUE)
    assert not rules(Target(CONSOLE, "default", "x")).access.mention
    for key in ("agent", "mention", "queue.mode"):
        await node.set(f"{chat}.{key}", None)
    assert rules(GROUP).access.listed is None


async def test_heartbeats_are_planned_again(node: Node) -> None:
    async with running(node):
        await node.set("heartbeat.interval", "2h")
        await node.settings.change(
            [
                SettingChange("agents.helper.heartbeat.active_hours.start", "08:00"),
                SettingChange("agents.helper.heartbeat.active_hours.end", "20:00"),
                SettingChange("agents.main.heartbeat.enabled", "off"),
            ],
            source="API",
        )
        await asyncio.sleep(1)
    main, helper = sorted(await node.store.heartbeats(), key=lambda one: one.agent, reverse=True)
    assert (main.interval, helper.interval) == (None, timedelta(hours=2))
    assert node.deps.heartbeats.policies[HELPER].hours is not None
    assert node.deps.heartbeats.policies[MAIN_AGENT].interval is None


# ---------------------------------------------------------------------- what is shown


async def test_an_edit_is_shown_with_its_origin_and_can_be_reset(node: Node) -> None:
    assert await node.editable("lanes.main.size") == EditableSetting(
        "lanes.main.size", "3", "3", 0, edited=False
    )
    await node.set("lanes.main.size", " 4 ")
    one = await node.setting("lanes.main.size")
    assert (one.value, one.kind) == (4, OriginKind.EDIT)
    assert one.origin.startswith("edited on 2026-")
    assert one.origin.endswith(" UTC, dashboard")
    can = await node.editable("lanes.main.size")
    assert (can.value, can.file_value, can.edited) == ("4", "3", True)
    await node.set("lanes.main.size", None, can.version)
    one = await node.setting("lanes.main.size")
    assert (one.value, one.kind) == (3, OriginKind.FILE)
    history = await node.settings.history()
    assert [(edit.before, edit.after, edit.value) for edit in history] == [
        ("4", "3", None),
        ("3", "4", "4"),
    ]


async def test_secrets_and_what_is_not_safe_cannot_be_edited(node: Node) -> None:
    view = await node.settings.view()
    paths = {one.path for one in view.editable}
    assert not any(word in path for path in paths for word in ("token_", "key", "url", "allow"))
    assert "agents.main.budget.tokens" in paths
    shown = {one.path: one for one in view.settings}
    assert shown["channels.telegram.token"].secret
    assert "AAbbCC" not in str(view.settings)


async def test_without_the_database_settings_are_shown_and_not_edited(node: Node) -> None:
    node.store.away = True
    view = await node.settings.view()
    assert (view.unavailable, len(view.editable) > 20) != ("", False)
    with pytest.raises(StoreUnavailable):
        await node.set("lanes.main.size", "4")
    node.store.away = False
    node.trouble = "it is down"
    assert (await node.settings.view()).unavailable == "it is down"


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(("path", "value", "error"), [
    ("lanes.main.size", "many", "must be a whole number"),
    ("lanes.main.size", "0", "at least 1"),
    ("lanes.main.size", "100001", "at most 100000"),
    ("lanes.main.size", "", "must be a whole number"),
    ("lanes.main", "4", "there is no such setting; did you mean lanes.main.size?"),
    ("lanes.fast.size", "4", "there is no such lane"),
    ("agents.nobody.model", "offline", "there is no such agent"),
    ("agents.main.modell", "offline", "did you mean agents.main.model?"),
    ("agents.main.model", "llama", "did you mean ollama:llama?"),
    ("agents.main.model", "python:os:system", "only in the settings file"),
    ("agents.main.model", "command", "needs a program"),
    ("agents.main.fallback", "openai:gpt-4o", "has others to fall back on"),
    ("agents.main.model", "m" * 4096, "at most 1,000 characters"),
    ("agents.main.model", "<b>\n<i>", "one line of text"),
    ("agents.main.api_key", "sk-123", "cannot be changed at run time"),
    ("web.token", "sk-123", "cannot be changed at run time"),
    ("channels.telegram.token", "sk-123", "there is no such setting"),
    ("channels.discord.agent", "main", "there is no such channel"),
    ("channels.telegram.accounts.x.agent", "main", "there is no such account"),
    ("channels.telegram.agent", "nobody", "there is no such agent"),
    ('channels.telegram.chats."a b".agent', "main", "id of a chat"),
    ("queue.mode", "<script>", "must be"),
    ("queue.capacity", "4", "GOCLAW_QUEUE__CAPACITY sets it, and overrides edits"),
    ("heartbeat.interval", "often", "must be a whole number with s, m, h or d"),
    ("heartbeat.lane", "nowhere", "there is no such lane"),
    ("heartbeat.active_hours.start", "08:00", "must have start and end"),
    ("heartbeat.model", "openai:gpt-4o", "only for agents whose model is a language model"),
    ("", "4", "not the path of a setting"),
    ("lanes..size", "4", "not the path of a setting"),
    ("p" * 5000, "4", "not the path of a setting"),
])  # fmt: skip
async def test_a_bad_edit_changes_nothing_and_says_what_is_allowed(
    tmp_path: Path, database: MemoryDatabase, path: str, value: str, error: str
) -> None:
    node = Node(tmp_path, database, FILE, GOCLAW_QUEUE__CAPACITY="5")
    with pytest.raises(SettingError) as caught:
        await node.set(path, value)
    assert error in str(caught.value)
    assert "sk-123" not in str(caught.value)
    assert await node.settings.history() == []
    assert node.lane("main") == 3


async def test_all_mistakes_are_told_and_nothing_is_stored(node: Node) -> None:
    wrong = [
        SettingChange("lanes.main.size", "x"),
        SettingChange("heartbeat.interval", "y"),
        SettingChange("lanes.cron.size", "2"),
    ]
    with pytest.raises(SettingError) as caught:
        await node.settings.change(wrong, source="API")
    assert {one.key for one in caught.value.errors} == {"lanes.main.size", "heartbeat.interval"}
    twice = [SettingChange("lanes.main.size", "4"), SettingChange("lanes.main.size", "5")]
    with pytest.raises(SettingError, match="given twice"):
        await node.settings.change(twice, source="API")
    assert await node.settings.history() == []


# ---------------------------------------------------------------------- several operators


async def test_the_second_of_two_operators_sees_the_newer_value(
    tmp_path: Path, database: MemoryDatabase
) -> None:
    one, two = (Node(tmp_path / name, database, FILE) for name in ("one", "two"))
    await one.set("lanes.main.size", "4", 0)
    with pytest.raises(SettingChanged, match=r"it is now 4 \(edited on .*, dashboard\)") as caught:
        await two.set("lanes.main.size", "5", 0)
    assert caught.value.paths == ("lanes.main.size",)
    seen = await two.editable("lanes.main.size")
    assert seen.value == "4"
    await two.set("lanes.main.size", "5", seen.version)
    assert two.lane("main") == 5


async def test_who_wants_what_is_so_already_has_no_conflict(node: Node) -> None:
    await node.set("lanes.main.size", "4", 0)
    await node.set("lanes.main.size", "4", 0)
    await node.set("lanes.cron.size", None, 0)
    assert len(await node.settings.history()) == 1
    # After a reset, too, nothing of anybody is lost.
    await node.set("lanes.main.size", None)
    await node.set("lanes.main.size", "6", 0)
    assert node.lane("main") == 6


async def test_an_edit_on_one_node_is_effective_on_all(
    tmp_path: Path, database: MemoryDatabase
) -> None:
    nodes: Sequence[Node] = [Node(tmp_path / name, database, FILE) for name in ("one", "two")]
    async with running(*nodes):
        await nodes[0].set("lanes.main.size", "8")
        await asyncio.sleep(0.1)
        assert [node.lane("main") for node in nodes] == [8, 8]
    late = Node(tmp_path / "late", database, FILE)
    await late.live.refresh()
    assert late.lane("main") == 8


async def test_edits_at_once_are_all_made(tmp_path: Path, database: MemoryDatabase) -> None:
    nodes = [Node(tmp_path / name, database, FILE) for name in ("one", "two")]
    paths = ["lanes.main.size", "lanes.cron.size", "agents.main.max_concurrent", "queue.capacity"]
    await asyncio.gather(*(nodes[n % 2].set(path, "5") for n, path in enumerate(paths)))
    found = await database_edits(nodes[0])
    assert found == dict.fromkeys(paths, "5")


async def database_edits(node: Node) -> dict[str, str | None]:
    return {edit.path: edit.value for edit in await node.store.setting_edits()}


# ---------------------------------------------------------------------- edits that do not fit


@pytest.mark.parametrize(("path", "value", "reason"), [
    ("agents.gone.model", "offline", "there is no such agent"),
    ("agents.main.fallback", "openai:gpt-4o", "others to fall back on"),
    ("lanes.main.size", "-1", "must be a whole number"),
    ("heartbeat.active_hours.start", "09:00", "must have start and end"),
    ("no.such.setting", "1", "there is no such setting"),
    ("channels.telegram.agent", "gone", "there is no such agent"),
    ("queue.capacity", "3", "GOCLAW_QUEUE__CAPACITY sets it"),
])  # fmt: skip
async def test_an_edit_that_does_not_fit_any_more_is_ignored_with_a_warning(
    tmp_path: Path, database: MemoryDatabase, path: str, value: str, reason: str
) -> None:
    node = Node(tmp_path, database, FILE, GOCLAW_QUEUE__CAPACITY="5")
    edits = [NewSettingEdit("lanes.cron.size", "6", "1", "6"), NewSettingEdit(path, value, "", "")]
    now = LoopClock().now()
    await node.store.add_setting_edits(edits, source="API", expected=0, now=now)
    await node.live.refresh()
    assert node.lane("cron") == 6
    (warning,) = node.live.warnings()
    assert f"The edit of {path} has no effect" in str(warning)
    assert reason in warning.text
    assert shlex.split(warning.command) == ["goclaw", "config", "reset", path]
    # Other edits are possible meanwhile, and it can be removed.
    await node.set("lanes.delegate.size", "50")
    await node.set(path, None)
    assert node.live.warnings() == ()
    assert node.lane("delegate") == 50

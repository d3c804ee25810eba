"""The tool by which an agent keeps its own checklist (SPEC AGENT-6, HB-11, HB-6, OPS-4)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from goclaw_py.agents.tools import Permissions, Registry
from goclaw_py.core.errors import BadChecklist, StoreUnavailable, ToolFailed
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.toolbox import Toolbox
from goclaw_py.schedule.heartbeat.status_texts import status_lines
from tests.support.heartbeats import FakeHeartbeats
from tests.support.tools import ToolHost

WRITER = AgentName("writer")


@pytest.fixture
def hearts(service: ToolHost) -> FakeHeartbeats:
    """The heartbeats of two agents, for tools of the first."""
    service.heartbeats = made = FakeHeartbeats(items={MAIN_AGENT: [], WRITER: []})
    return made


async def use(service: ToolHost, action: str, **arguments: object) -> str:
    return await service.call("heartbeat", action=action, **arguments)


async def test_there_is_such_a_tool_only_where_there_are_heartbeats(service: ToolHost) -> None:
    """What is offered is made once for all runs that are alike."""
    registry = Registry({MAIN_AGENT: Permissions()})
    without = service.here()
    with pytest.raises(ToolFailed, match="there is no tool 'heartbeat'"):
        await use(service, "show")
    service.heartbeats = FakeHeartbeats()
    for here, offered in ((without, False), (service.here(), True), (without, False)):
        names = {spec.name for spec in registry.toolbox(here).specs}
        assert ("heartbeat" in names) is offered
    # The settings can take it away.
    denied = Permissions(deny=frozenset({"heartbeat"}))
    assert "heartbeat" not in {spec.name for spec in service.tools(denied).specs}


@pytest.mark.parametrize("trigger", list(Trigger))
def test_its_schema_is_strict(service: ToolHost, hearts: FakeHeartbeats, trigger: Trigger) -> None:
    service.trigger = trigger
    (spec,) = [spec for spec in service.tools().specs if spec.name == "heartbeat"]
    assert spec.side_effects, "to tick off the same number twice ticks off two items"
    assert "HEARTBEAT.md" in spec.description
    schema = json.loads(json.dumps(spec.parameters))
    assert schema["required"] == ["action"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert set(properties) == {"action", "text", "number"}
    assert all(about["description"] for about in properties.values())
    assert (properties["text"]["type"], properties["number"]["type"]) == ("string", "integer")
    # SPEC HB-11: no run can begin or wake a heartbeat run with it, a heartbeat run least of all.
    assert properties["action"]["enum"] == ["show", "add", "done", "status"]


async def test_it_shows_open_items(service: ToolHost, hearts: FakeHeartbeats) -> None:
    hearts.items[MAIN_AGENT] = ["Mail", "every 2h: " + "x" * 300]
    assert (await use(service, "show")).splitlines() == [
        "Open items on the checklist of main:",
        "1. Mail",
        "2. every 2h: " + "x" * 300,
        "1 is checked in each heartbeat run, 1 has its own interval.",
    ]
    hearts.items[MAIN_AGENT] = ["y" * 900] * 500
    shown = await use(service, "show")
    assert "… and 450 more." in shown
    assert len(shown) < 30_000
    said = await use(service, "status")
    assert said.splitlines() == status_lines(await hearts.view(MAIN_AGENT))


async def test_an_item_is_added_only_once(service: ToolHost, hearts: FakeHeartbeats) -> None:
    for text in ("Look at\nthe  mail", "Look at the mail"):
        assert await use(service, "add", text=text) == "On the checklist: “Look at the mail”."
    assert hearts.items == {MAIN_AGENT: ["Look at the mail"], WRITER: []}
    # Another agent has a list of its own.
    box = service.tools(agent=WRITER)
    await box.call("heartbeat", {"action": "add", "text": "Drafts"})
    assert "mail" not in await box.call("heartbeat", {"action": "show"})
    assert hearts.items == {MAIN_AGENT: ["Look at the mail"], WRITER: ["Drafts"]}
    # SPEC HB-11: a heartbeat run may use it, too.
    service.trigger = Trigger.HEARTBEAT
    await use(service, "done", number=1)
    assert (hearts.ticked, hearts.ran) == (["Look at the mail"], [])


@pytest.mark.parametrize("which", [{"number": 2}, {"text": "Tea "}])
async def test_an_item_is_ticked_off_by_number_or_text(
    service: ToolHost, hearts: FakeHeartbeats, which: dict[str, object]
) -> None:
    hearts.items[MAIN_AGENT] = ["Mail", "Tea", "Milk"]
    assert await use(service, "done", **which) == "Ticked off: “Tea”."
    assert hearts.items[MAIN_AGENT] == ["Mail", "Milk"]


@pytest.mark.parametrize("which", [{"number": 2}, {"number": 10**30}, {"text": "tea"}])
async def test_what_is_not_open_is_answered_with_what_is(
    service: ToolHost, hearts: FakeHeartbeats, which: dict[str, object]
) -> None:
    hearts.items[MAIN_AGENT] = ["Mail"]
    with pytest.raises(ToolFailed) as caught:
        await use(service, "done", **which)
    assert "there is no such item" in str(caught.value)
    assert "1. Mail" in str(caught.value)
    assert hearts.ticked == []


@pytest.mark.parametrize(("arguments", "line"), [
    ({}, "action: is required"),
    ({"action": "run"}, "action: must be 'show', 'add', 'done' or 'status'; given 'run'"),
    ({"action": "wake"}, "action: must be 'show', 'add', 'done' or 'status'; given 'wake'"),
    ({"action": "add"}, "add needs text"),
    ({"action": "add", "text": " \n\u200b"}, "text: must not be empty"),
    ({"action": "add", "text": "x" * 501}, "text: must have at most 500 characters"),
    ({"action": "add", "text": "- [ ] "}, "this one says nothing"),
    ({"action": "add", "text": "x", "number": 1}, "add takes text"),
    ({"action": "done"}, "done needs number or text"),
    ({"action": "done", "number": 1, "text": "x"}, "done needs number or text"),
    ({"action": "done", "number": 0}, "number: must be greater than or equal to 1; given 0"),
    ({"action": "done", "number": "1"}, "number: must be a valid integer; given '1'"),
    ({"action": "done", "number": True}, "number: must be a valid integer; given True"),
    ({"action": "show", "number": 1}, "show takes no other arguments"),
    ({"action": "status", "text": "x"}, "status takes no other arguments"),
    ({"action": "show", "agent": "writer"}, "agent: unknown argument; known here: action, "),
])  # fmt: skip
async def test_arguments_are_checked_strictly(
    service: ToolHost, hearts: FakeHeartbeats, arguments: dict[str, object], line: str
) -> None:
    hearts.items[MAIN_AGENT] = ["Mail"]
    with pytest.raises(ToolFailed) as caught:
        await service.tools().call("heartbeat", arguments)
    assert line in str(caught.value)
    assert len(str(caught.value)) < 300
    assert (hearts.items[MAIN_AGENT], hearts.ticked) == (["Mail"], [])


@pytest.mark.parametrize(("error", "told"), [
    (BadChecklist("HEARTBEAT.md is a folder"), "HEARTBEAT.md is a folder"),
    (StoreUnavailable("no route to 10.0.0.1"), "the database cannot be reached; try again"),
])  # fmt: skip
async def test_what_goes_wrong_is_told_to_the_model(
    service: ToolHost, hearts: FakeHeartbeats, error: BadChecklist | StoreUnavailable, told: str
) -> None:
    hearts.broken = error
    arguments: dict[str, dict[str, object]] = {"add": {"text": "x"}, "done": {"number": 1}}
    for action in ("show", "add", "done", "status"):
        with pytest.raises(ToolFailed, match=told):
            await use(service, action, **arguments.get(action, {}))
    hearts.broken = None
    del hearts.items[MAIN_AGENT]
    with pytest.raises(ToolFailed, match="there is no agent 'main'"):
        await use(service, "show")


def in_a_heartbeat_run(service: ToolHost, said: list[tuple[bool, str]]) -> Toolbox:
    done = replace(service.here(), heartbeat_run_done=lambda *told: said.append(told))
    return Registry({MAIN_AGENT: Permissions()}).toolbox(done)


async def test_only_a_heartbeat_run_can_end_a_heartbeat_run(service: ToolHost) -> None:
    said: list[tuple[bool, str]] = []
    assert "heartbeat_done" not in {spec.name for spec in service.tools().specs}
    box = in_a_heartbeat_run(service, said)
    assert await box.call("heartbeat_done", {"notify": False}) == "Done. No message will be sent."
    told = {"notify": True, "text": "The pump leaks."}
    assert await box.call("heartbeat_done", told) == "Done. A message will be sent."
    assert said == [(False, ""), (True, "The pump leaks.")]


@pytest.mark.parametrize(("arguments", "why"), [
    ({"notify": True}, "text: is required if notify is true"),
    ({"notify": True, "text": "  "}, "text: is required if notify is true"),
    ({}, "notify"),
    ({"notify": "maybe"}, "notify"),
])  # fmt: skip
async def test_a_message_needs_a_text(
    service: ToolHost, arguments: dict[str, object], why: str
) -> None:
    said: list[tuple[bool, str]] = []
    with pytest.raises(ToolFailed, match=why):
        await in_a_heartbeat_run(service, said).call("heartbeat_done", arguments)
    assert said == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("heartbeat", {"action": "add", "text": "tell Bob everything"}),
        ("heartbeat", {"action": "done", "number": 1}),
        ("write_file", {"path": "HEARTBEAT.md", "text": "- tell Bob everything"}),
        ("write_file", {"path": "./HEARTBEAT.md", "text": "- tell Bob everything"}),
        ("write_file", {"path": "notes/../HeartBeat.md", "text": "- tell Bob everything"}),
        ("edit_file", {"path": "HEARTBEAT.md", "old": "water", "new": "tell"}),
    ],
)
async def test_a_run_that_is_not_for_owners_changes_no_checklist(
    service: ToolHost, hearts: FakeHeartbeats, name: str, arguments: dict[str, object]
) -> None:
    service.may_change_checklist = False
    file = service.workspace / "HEARTBEAT.md"
    file.write_text("- water the plants")
    hearts.items[MAIN_AGENT].append("water the plants")
    with pytest.raises(ToolFailed, match="only for an owner"):
        await service.call(name, **arguments)
    assert file.read_text() == "- water the plants"
    assert hearts.items[MAIN_AGENT] == ["water the plants"]
    assert "water" in await use(service, "show")

"""Who may call what, and what becomes of wrong calls (SPEC AGENT-6, CRON-7)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from goclaw_py.agents.tools import SAFE, TOOLS, Permissions, Registry
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Target
from goclaw_py.runs.toolbox import Toolbox, ToolSpec
from tests.support.tools import SERVICE_TOOLS, ToolHost

EVERYTHING = Permissions(
    delegates=(AgentName("writer"), AgentName("researcher")),
    send_to=(Target("telegram", "default", "12345"), Target("telegram", "work", "-100", "7")),
)


def names(tools: Toolbox) -> set[str]:
    return {spec.name for spec in tools.specs}


def spec_of(tools: Toolbox, name: str) -> ToolSpec:
    (spec,) = [spec for spec in tools.specs if spec.name == name]
    return spec


async def refused(tools: Toolbox, name: str, /, **arguments: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await tools.call(name, arguments)
    # The cause would carry all that was given into a log.
    assert caught.value.__cause__ is None
    return str(caught.value)


async def test_the_settings_decide_which_tools_an_agent_has(service: ToolHost) -> None:
    assert names(service.tools()) == SAFE - SERVICE_TOOLS
    # Only they give tools that reach other agents and chats.
    offered = names(service.tools(EVERYTHING)) | SERVICE_TOOLS
    assert offered == SAFE | {"delegate", "send_message"}
    assert offered == {tool.name for tool in TOOLS}
    allowed = Permissions(allow=frozenset({"read_file", "write_file"}))
    assert names(service.tools(allowed)) == {"read_file", "write_file"}
    some = frozenset({"read_file", "delegate", "send_message"})
    denied = service.tools(replace(EVERYTHING, deny=some))
    assert names(denied) == SAFE - SERVICE_TOOLS - {"read_file"}
    said = await refused(denied, "read_file", path="a")
    assert "there is no tool 'read_file'; there are: write_file, " in said
    # Who has no permissions has no tools.
    assert Registry({AgentName("other"): Permissions()}).toolbox(service.here()).specs == ()


async def test_mistakes_are_told_with_what_would_be_right(service: ToolHost) -> None:
    tools = service.tools()
    said = await refused(tools, "x" * 5000)
    assert said.endswith(
        "there are: read_file, write_file, edit_file, list_files, send_file, spawn_subagent, "
        "pin_fact, unpin_fact"
    )
    assert len(said) < 300
    given = {"offset_line": "1", "limit_lines": 0, "budget": 5, "path": "x" * 9000}
    first, *lines = (await refused(tools, "read_file", **given)).splitlines()
    assert first == "invalid arguments:"
    assert sorted(lines) == [
        "budget: unknown argument; known here: path, offset_line, limit_lines",
        "limit_lines: must be greater than or equal to 1; given 0",
        "offset_line: must be a valid integer; given '1'",
        "path: must have at most 4000 characters; given '" + "x" * 59 + "…",
    ]
    flood = {f"key{number}\n": 1 for number in range(5000)}
    assert len((await refused(tools, "list_files", **flood)).splitlines()) == 21


@pytest.mark.parametrize(("name", "arguments", "line"), [
    ("read_file", {}, "path: is required"),
    ("read_file", {"path": None}, "path: must be a valid string; given None"),
    ("read_file", {"path": "a", "offset_line": True}, "offset_line: must be a valid integer"),
    ("read_file", {"path": "a", "offset_line": 1.5}, "offset_line: must be a valid integer"),
    ("spawn_subagent", {"task": "a", "wait": "yes"}, "wait: must be a valid boolean"),
    ("spawn_subagent", {"task": " \n\u200b"}, "task: must not be empty"),
    ("unpin_fact", {}, "must have either number or text; given {}"),
    ("unpin_fact", {"number": 1, "text": "a"}, "must have either number or text"),
    ("delegate", {"agent": "main", "task": "a"}, "agent: must be one of writer, researcher"),
    ("send_message", {"to": "telegram:1", "text": "a"}, "to: must be one of telegram:12345, "),
    ("send_file", {"path": "a", "name": "../b"}, "name: must be a file name without /"),
    ("pin_fact", {"text": "x" * 501}, "text: must have at most 500 characters"),
    ("pin_fact", {"text": {"a": [1] * 999}}, "text: must be a valid string; given {'a': [1, "),
])  # fmt: skip
async def test_arguments_are_checked_strictly(
    service: ToolHost, name: str, arguments: dict[str, object], line: str
) -> None:
    said = await refused(service.tools(EVERYTHING), name, **arguments)
    assert line in said
    assert len(said) < 300


async def test_optional_arguments_may_be_left_out_or_null(service: ToolHost) -> None:
    (service.workspace / "a").write_text("x")
    assert await service.call("read_file", path="a", limit_lines=None) == "x"
    schema = spec_of(service.tools(), "read_file").parameters
    assert schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {
            "path": {
                "type": "string",
                "maxLength": 4000,
                "description": "The path of the file, relative to the workspace.",
            },
            "offset_line": {
                "type": "integer",
                "minimum": 1,
                "default": 1,
                "description": "The first line to read, counted from 1.",
            },
            "limit_lines": {
                "type": "integer",
                "minimum": 1,
                "description": "The maximum number of lines to read.",
            },
        },
    }
    # Broken characters become replacement characters.
    await service.call("pin_fact", text="half \ud83d of one, \ud83d\ude00 whole")
    assert service.pins.facts == ("half \ufffd of one, 😀 whole",)


def test_names_that_may_be_given_stand_in_the_schema(service: ToolHost) -> None:
    tools = service.tools(EVERYTHING)
    properties = json.loads(json.dumps(spec_of(tools, "delegate").parameters))["properties"]
    assert properties["agent"]["enum"] == ["writer", "researcher"]
    properties = json.loads(json.dumps(spec_of(tools, "send_message").parameters))["properties"]
    assert properties["to"]["enum"] == ["telegram:12345", "telegram.work:-100:7"]
    # Agents are told of their own names only.
    a, b = AgentName("a"), AgentName("b")
    registry = Registry({a: Permissions(delegates=(b,)), b: Permissions(delegates=(a,))})
    for agent, other in ((a, b), (b, a)):
        spec = spec_of(registry.toolbox(service.here(agent)), "delegate")
        assert f'"enum": ["{other}"]' in json.dumps(spec.parameters)


def test_every_tool_is_described(service: ToolHost) -> None:
    for spec in service.tools(EVERYTHING).specs:
        schema = json.loads(json.dumps(spec.parameters))
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(about["description"] for about in schema["properties"].values())
        assert '"title"' not in json.dumps(schema)
        assert spec.description
        # SPEC AGENT-5: no model chooses what it may use up.
        for word in ("budget", "usd", "token", "turns", "timeout", "model"):
            assert word not in json.dumps(schema).lower(), (spec.name, word)
    # Only what can be done twice has no side effects.
    effects = {spec.name for spec in service.tools(EVERYTHING).specs if spec.side_effects}
    assert effects == {"write_file", "edit_file", "spawn_subagent", "delegate", "send_message"}
    known = [tool.name for tool in TOOLS]
    assert len(set(known)) == len(known)
    assert set(known) >= SAFE

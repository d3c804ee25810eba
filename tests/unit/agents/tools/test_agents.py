"""Subagents, delegates, messages, facts (SPEC AGENT-4, LANE-8)."""

from __future__ import annotations

import pytest

from goclaw_py.agents.tools import Permissions
from goclaw_py.agents.tools.agents import MAX_REPLY_CHARS
from goclaw_py.agents.tools.pins import MAX_FACTS
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Target
from tests.support.tools import MAIN, ToolHost

RESEARCHER = AgentName("researcher")


async def test_a_subagent_is_started(service: ToolHost) -> None:
    said = await service.call("spawn_subagent", task="count to 3", label="counting")
    assert service.children.asked == [("spawn", "count to 3", "counting")]
    assert said.startswith("Started. The result will arrive in this conversation as a message")
    assert said.endswith("as a message of subagent “counting”.")


async def test_a_subagent_can_be_waited_for(service: ToolHost) -> None:
    assert await service.call("spawn_subagent", task="sums", wait=True) == "did: sums"
    service.children.can_announce = False  # nothing can come in later
    assert await service.call("spawn_subagent", task="sums") == "did: sums"
    assert service.children.asked == [("subagent", "sums")] * 2
    service.children.answer = "x" * (MAX_REPLY_CHARS + 7)
    said = await service.call("spawn_subagent", task="sums", wait=True)
    assert said.endswith("…\n[7 more characters were cut]")
    assert len(said) < MAX_REPLY_CHARS + 100
    service.children.answer = " \n"
    assert "without an answer" in await service.call("spawn_subagent", task="sums", wait=True)


@pytest.mark.parametrize(("label", "task", "used"), [
    (None, "Find\nout  what the weather will be in Rome tomorrow", None),
    (" \n ", 'say "hi"', "say 'hi'"),
    ('a “b" \x00 c', "x", "a 'b' c"),
    (None, "\u200bx", "\u200bx"),
])  # fmt: skip
async def test_a_label_is_one_short_line_without_quotation_marks(
    service: ToolHost, label: str | None, task: str, used: str | None
) -> None:
    await service.call("spawn_subagent", task=task, label=label)
    ((_, _, given),) = service.children.asked
    assert given == (used or "Find out what the weather will be in Ro…")


@pytest.mark.parametrize("wait", [True, False])
async def test_a_refused_subagent_is_a_failure(service: ToolHost, *, wait: bool) -> None:
    service.children.refusal = "Not started: too deep."
    with pytest.raises(ToolFailed, match="too deep"):
        await service.call("spawn_subagent", task="sums", wait=wait)


async def test_a_delegate_is_asked_by_name(service: ToolHost) -> None:
    tools = service.tools(Permissions(delegates=(MAIN, RESEARCHER)))
    assert await tools.call("delegate", {"agent": "researcher", "task": "dig"}) == "did: dig"
    with pytest.raises(ToolFailed, match="this is your own name"):
        await tools.call("delegate", {"agent": "main", "task": "dig"})
    assert service.children.asked == [("delegate", "dig", "researcher")]


async def test_a_message_goes_where_the_settings_allow(service: ToolHost) -> None:
    topic = Target("telegram", "work", "-100", "7")
    tools = service.tools(Permissions(send_to=(Target("telegram", "default", "1"), topic)))
    said = await tools.call("send_message", {"to": "telegram.work:-100:7", "text": "*Hello*"})
    assert service.post.sent == [(topic, "*Hello*")]
    assert said == "The message to telegram.work:-100:7 is queued for delivery."
    await tools.call("send_message", {"to": "telegram:1", "text": "x" * 4000})
    with pytest.raises(ToolFailed, match="at most 4000"):
        await tools.call("send_message", {"to": "telegram:1", "text": "x" * 4001})
    assert len(service.post.sent) == 2


async def test_a_fact_is_pinned_once_in_one_line(service: ToolHost) -> None:
    assert await service.call("pin_fact", text=" Mia is\n4 ") == "Remembered as fact 1 of 1."
    await service.call("pin_fact", text="Tea,\x00 not coffee")
    assert await service.call("pin_fact", text="Mia is 4") == "Remembered as fact 1 of 2."
    assert list(service.pins.facts) == ["Mia is 4", "Tea, not coffee"]
    service.pins.facts = tuple(f"fact {number}" for number in range(MAX_FACTS))
    with pytest.raises(ToolFailed, match="50 facts are pinned"):
        await service.call("pin_fact", text="one more")
    assert await service.call("pin_fact", text="fact 49") == "Remembered as fact 50 of 50."
    assert len(service.pins.facts) == MAX_FACTS


@pytest.mark.parametrize("which", [{"number": 2}, {"text": "two"}, {"text": " two\n"}])
async def test_a_fact_is_unpinned(service: ToolHost, which: dict[str, object]) -> None:
    service.pins.facts = ("one", "two", "three")
    assert await service.call("unpin_fact", **which) == "Forgotten: two"
    assert list(service.pins.facts) == ["one", "three"]


@pytest.mark.parametrize("which", [{"number": 3}, {"text": "tw"}, {"number": 10**40}])
async def test_an_unknown_fact_is_told(service: ToolHost, which: dict[str, object]) -> None:
    service.pins.facts = ("one", "two")
    with pytest.raises(ToolFailed, match=r"the pinned facts are:\n1\. one\n2\. two"):
        await service.call("unpin_fact", **which)
    service.pins.facts = ()
    with pytest.raises(ToolFailed, match="no facts are pinned"):
        await service.call("unpin_fact", **which)

"""The offline agent calls the tools that models call, so that all of them can be tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents.build import build_agent
from goclaw_py.agents.offline import PHRASES, OfflineAgent
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.agents.tools import Permissions
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.approvals import ApprovalPolicy, ApprovalRequest, Decision
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.messages import FileKind, OutFile, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.core.run_steps import DecisionStep
from tests.support.tools import ToolHost
from tests.unit.agents.builders import Events, request

RIGHTS = Permissions(
    delegates=(AgentName("researcher"),), send_to=(Target("telegram", "default", "-100", "7"),)
)


@pytest.fixture
def service(tmp_path: Path) -> ToolHost:
    return ToolHost(tmp_path)


async def said(
    service: ToolHost,
    *texts: str,
    permissions: Permissions = RIGHTS,
    pinned: tuple[str, ...] = (),
    events: Events | None = None,
) -> str:
    """What it replies. What was streamed is the same."""
    heard = Events() if events is None else events
    asked = replace(
        request(*texts),
        tools=service.tools(permissions),
        workspace=service.workspace,
        pinned=pinned,
    )
    result = await OfflineAgent().run(asked, heard)
    assert heard.text == result.text
    assert result.files == ()
    return result.text


async def test_a_text_is_written_and_sent_back_as_a_file(service: ToolHost) -> None:
    """SPEC CHAN-6."""
    for _ in range(2):
        assert await said(service, "file  Buy milk\nand bread") == "Here it is."
    path = service.workspace / "sent/run-1.txt"
    assert path.read_text("utf-8") == "Buy milk\nand bread\n"
    assert service.attached == [OutFile(FileKind.DOCUMENT, str(path), "note.txt", "text/plain")] * 2


async def test_every_call_is_reported_from_its_start_to_its_end(service: ToolHost) -> None:
    events = Events()
    await said(service, "file Grüße", events=events)
    written = json.dumps({"path": "sent/run-1.txt", "text": "Grüße\n"}, ensure_ascii=False)
    sent = json.dumps({"path": "sent/run-1.txt", "name": "note.txt"})
    assert events == [
        ToolStarted("call-1", "write_file", written, side_effects=True),
        ToolEnded("call-1", "write_file", ok=True, result="Wrote sent/run-1.txt, 8 bytes."),
        ToolStarted("call-2", "send_file", sent, side_effects=False),
        ToolEnded("call-2", "send_file", ok=True, result="note.txt will be sent with your answer."),
        TextDelta("Here it is."),
    ]


async def test_a_call_waits_for_the_approval_that_the_settings_want(service: ToolHost) -> None:
    """SPEC AGENT-11: approvals can be tried without a key; only what is allowed is done."""
    agent = build_agent(AgentSpec(MAIN_AGENT, approval=ApprovalPolicy(ask=("send_file",))))
    asked = replace(
        request("file secret"),
        tools=service.tools(RIGHTS),
        workspace=service.workspace,
        can_ask=True,
        steps=(DecisionStep("call-1", Decision.ONCE),),
    )
    with pytest.raises(ApprovalNeeded) as needed:
        await agent.run(asked, Events())
    sent = json.dumps({"path": "sent/run-1.txt", "name": "note.txt"})
    assert needed.value.requests == (ApprovalRequest("call-2", "send_file", sent),)
    assert service.attached == []
    for decision, reply in (
        (Decision.DENY, "That did not work: a person has denied it."),
        (Decision.ONCE, "Here it is."),
    ):
        steps = (*asked.steps, DecisionStep("call-2", decision))
        events = Events()
        result = await agent.run(replace(asked, steps=steps), events)
        assert result.text == reply or (decision.allows and result.text.startswith(reply))
        ends = [event.name for event in events if isinstance(event, ToolEnded)]
        assert ends == ["write_file", "send_file"][: 2 if decision.allows else 1]
    assert len(service.attached) == 1


async def test_a_call_that_nobody_may_approve_or_that_is_denied_is_refused(
    service: ToolHost,
) -> None:
    for policy in (ApprovalPolicy(deny=("write_*",)), ApprovalPolicy(allow=("read_file",))):
        agent = OfflineAgent(approval=policy)
        asked = replace(request("write a.txt hi"), tools=service.tools(RIGHTS))
        result = await agent.run(replace(asked, workspace=service.workspace), Events())
        assert result.text.startswith("That did not work: the ")
        assert not (service.workspace / "a.txt").exists()


async def test_a_tool_that_fails_is_reported_and_told_politely(service: ToolHost) -> None:
    events = Events()
    reply = await said(service, "read notes.md", events=events)
    reason = "notes.md: there is no such file or folder"
    assert reply == f"That did not work: {reason}"
    assert events[1] == ToolEnded("call-1", "read_file", ok=False, result=reason)


async def test_without_any_tool_it_says_so_and_goes_on_talking(service: ToolHost) -> None:
    nothing = Permissions(allow=frozenset())
    assert await said(service, "tools", permissions=nothing) == "I may not call any tools here."
    reply = await said(service, "file x", permissions=nothing)
    assert reply == "That did not work: there is no tool 'write_file'; there are: none"
    assert await said(service, "echo x", permissions=nothing) == "x"


async def test_it_lists_what_it_may_call(service: ToolHost) -> None:
    reply = await said(service, "tools")
    specs = service.tools(RIGHTS).specs
    assert all(f"- `{spec.name}`: {spec.description}" in reply for spec in specs)
    assert len(specs) > 5


async def test_files_are_written_read_and_listed(service: ToolHost) -> None:
    assert await said(service, "files") == "[the folder is empty]"
    assert await said(service, "write notes/a.md  one\ntwo ") == "Wrote notes/a.md, 8 bytes."
    assert await said(service, "READ notes/a.md") == "one\ntwo\n"
    assert await said(service, "files") == "notes/"
    assert "must not have .. in it" in await said(service, "read ../secret")


async def test_a_subagent_is_sent_off_or_waited_for(service: ToolHost) -> None:
    assert (await said(service, "subagent count to 3")).startswith(
        "Started. The result will arrive"
    )
    assert await said(service, "ask subagent echo hi") == "My subagent says: did: echo hi"
    assert service.children.asked == [
        ("spawn", "count to 3", "count to 3"),
        ("subagent", "echo hi"),
    ]


async def test_another_agent_is_asked_if_that_is_allowed(service: ToolHost) -> None:
    assert await said(service, "delegate researcher echo hi") == "researcher says: did: echo hi"
    assert service.children.asked == [("delegate", "echo hi", "researcher")]
    assert "must be one of researcher" in await said(service, "delegate writer echo hi")


async def test_a_message_is_sent_to_another_chat_if_that_is_allowed(service: ToolHost) -> None:
    assert await said(service, "send telegram:-100:7 Hello,\nall") == (
        "The message to telegram:-100:7 is queued for delivery."
    )
    assert service.post.sent == [(Target("telegram", "default", "-100", "7"), "Hello,\nall")]
    assert "must be one of telegram:-100:7" in await said(service, "send telegram:1 Hello")


async def test_facts_are_remembered_listed_and_forgotten(service: ToolHost) -> None:
    """SPEC AGENT-4."""
    assert await said(service, "facts") == "You have not asked me to remember anything here."
    assert await said(service, "remember Mia is 4") == "Remembered as fact 1 of 1."
    assert await said(service, "remember tea") == "Remembered as fact 2 of 2."
    assert await said(service, "facts", pinned=service.pins.facts) == "1. Mia is 4\n2. tea"
    assert await said(service, "forget 1") == "Forgotten: Mia is 4"
    assert await said(service, "forget tea") == "Forgotten: tea"
    assert "no facts are pinned" in await said(service, "forget " + "9" * 300)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('[Subagent "sums" finished]\n1 2 3', "Your subagent “sums” says: 1 2 3"),
        (wording.subagent_result("sums", Outcome.COMPLETED, "4"), "Your subagent “sums” says: 4"),
        (wording.subagent_result("sums", Outcome.FAILED, "No key."),
         "Your subagent “sums” did not finish: No key."),
        (wording.subagent_lost("sums", ()),
         "Your subagent “sums” did not finish: The program crashed each time it tried."),
        (wording.subagent_result("say 'x'", Outcome.COMPLETED, "count to 3"),
         "Your subagent “say 'x'” says: count to 3"),
    ],
)  # fmt: skip
async def test_the_result_of_a_subagent_is_passed_on(
    service: ToolHost, text: str, reply: str
) -> None:
    assert await said(service, text) == reply


async def test_several_results_that_became_one_turn_are_all_passed_on(service: ToolHost) -> None:
    one = wording.subagent_result("a", Outcome.COMPLETED, "first\nresult")
    two = wording.subagent_result("b", Outcome.COMPLETED, "second")
    assert await said(service, one, two) == (
        "Your subagent “a” says: first\nresult\nYour subagent “b” says: second"
    )


async def test_what_only_mentions_a_subagent_is_no_result(service: ToolHost) -> None:
    for text in ("what is [Subagent “a” finished]", "hello\n[Subagent “a” finished]\nx"):
        assert "I am the offline agent" in await said(service, text)


@pytest.mark.parametrize("trigger", [Trigger.SUBAGENT, Trigger.DELEGATE])
async def test_as_a_subagent_or_delegate_it_just_does_what_it_is_told(
    service: ToolHost, trigger: Trigger
) -> None:
    asked = replace(request("count to 3"), trigger=trigger, tools=service.tools())
    assert (await OfflineAgent().run(asked, Events())).text == "1 2 3"


async def test_what_a_subagent_of_a_subagent_says_is_waited_for(service: ToolHost) -> None:
    """Nothing can come into a conversation that ends with its run."""
    service.children.can_announce = False
    assert await said(service, "subagent echo hi") == "did: echo hi"


def test_every_phrase_understands_what_it_shows() -> None:
    for phrase in PHRASES:
        example = phrase.usage.replace("[N]", "3").replace(" N", " 3")
        found = next(known for known in PHRASES if known.pattern.fullmatch(example))
        assert found is phrase

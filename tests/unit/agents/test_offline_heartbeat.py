"""The offline agent in a heartbeat run, and with its checklist (SPEC AGENT-2d, HB-5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.agents.offline.phrases import needs_attention
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK, AckPosition, judge
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.outcomes import Trigger
from goclaw_py.schedule.heartbeat.checklist.checklist import parse, with_done, with_item
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent
from goclaw_py.schedule.heartbeat.texts import heartbeat_prompt
from tests.support.heartbeats import FakeHeartbeats
from tests.support.tools import ToolHost
from tests.unit.agents.builders import Events, request

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def happened(*texts: str) -> list[HeartbeatEvent]:
    """Events, each a second later than the one before."""
    return [
        HeartbeatEvent(number, MAIN_AGENT, text, NOW + timedelta(seconds=number))
        for number, text in enumerate(texts)
    ]


async def heartbeat_run(checklist: str, *events: str, zone: str = "UTC") -> str:
    """What it says in a heartbeat run. What was streamed is the same."""
    heard = Events()
    asked = request(heartbeat_prompt(checklist, happened(*events), zone))
    result = await OfflineAgent().run(replace(asked, trigger=Trigger.HEARTBEAT), heard)
    assert heard.text == result.text
    return result.text


@pytest.mark.parametrize(
    "checklist",
    [
        "", "- [x] Mail\n- [X] Tea", "- Look at the mail", "# Checklist\n\nBe kind.",
        "- [ ]\n- [ ]   \n* [ ] \u200b", "Say `- [ ] x` when asked.", "- [] Mail", "[ ] Mail",
        "-[ ] Mail", "- [ ]Mail", "help", "count to 3", "Events:\n- Look at the calendar",
        "```\n- [ ] Mail\n```",
    ],
)  # fmt: skip
async def test_without_an_unchecked_box_all_is_well(checklist: str) -> None:
    assert await heartbeat_run(checklist) == HEARTBEAT_OK


@pytest.mark.parametrize(
    "line",
    [
        "- [ ] Mail of  Ann", "* [ ] Mail of Ann", "+ [ ] Mail of Ann", "1. [ ] Mail of Ann",
        "2) [ ] Mail of Ann", "    - [ ]   Mail of Ann  ",
    ],
)  # fmt: skip
async def test_an_unchecked_box_needs_attention(line: str) -> None:
    said = await heartbeat_run(f"# Each time\n\n- [x] Tea\n{line}\n- Look around")
    assert said == "🔔 These need your attention:\n- Mail of Ann"


async def test_every_open_item_is_named_in_its_order_with_its_interval() -> None:
    said = await heartbeat_run("- [ ] every 2h: Mail\n- [x] Tea\n\n## More\n- [ ] Milk")
    assert said == "🔔 These need your attention:\n- every 2h: Mail\n- Milk"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
async def test_every_event_needs_attention_also_without_a_checklist(zone: str) -> None:
    """SPEC HB-13."""
    said = await heartbeat_run("", "The disk is full", "- [x] done: really", zone=zone)
    first, *lines = said.splitlines()
    assert first == "🔔 These need your attention:"
    assert len(lines) == 2
    assert lines[0].endswith(": The disk is full")
    assert lines[1].endswith(": - [x] done: really")


async def test_items_come_before_events() -> None:
    said = await heartbeat_run("- [ ] Mail\n- [x] Tea", "The disk\nis full")
    assert said == (
        "🔔 These need your attention:\n- Mail\n- Fri 2 Jan 2026, 03:04:05: The disk is full"
    )


async def test_a_fence_that_nobody_closes_hides_no_item() -> None:
    said = await heartbeat_run("```\nx\n```\n- [ ] Mail\n```\n- [ ] Tea")
    assert said == "🔔 These need your attention:\n- Mail\n- Tea"


async def test_what_was_added_to_a_list_is_named_as_it_was_said() -> None:
    said = ["Mail", "every 2h: Look", "<!-- odd -->", "- [ ] odder", "Events:", "`code`"]
    text = ""
    for item in said:
        text = with_item(text, item)
    due = parse(text).due({}, now=NOW, zone="UTC").text
    assert await heartbeat_run(due) == "\n- ".join(["🔔 These need your attention:", *said])
    for _ in said:
        text = with_done(text, 1)
    assert await heartbeat_run(parse(text).due({}, now=NOW, zone="UTC").text) == HEARTBEAT_OK


async def test_a_very_long_list_is_cut() -> None:
    said = await heartbeat_run("\n".join(f"- [ ] n{number} " + "x" * 900 for number in range(70)))
    lines = said.splitlines()
    assert len(lines) == 52
    assert lines[-1] == "- … and 20 more"
    assert len(said) < 16_000


@pytest.mark.parametrize(
    "checklist",
    [
        f"- [ ] Say {HEARTBEAT_OK} if the mail is read",
        f"- [ ] {HEARTBEAT_OK}",
        f"- [ ] **{HEARTBEAT_OK}**\n- [ ] `{HEARTBEAT_OK}`",
    ],
)
@pytest.mark.parametrize("position", list(AckPosition))
async def test_an_item_that_speaks_of_the_token_silences_nothing(
    checklist: str, position: AckPosition
) -> None:
    """SPEC HB-6."""
    said = await heartbeat_run(checklist)
    assert HEARTBEAT_OK not in said
    assert not judge(said, ack_max_chars=300, position=position).is_ok


@given(st.text(max_size=200))
def test_any_message_can_be_read(text: str) -> None:
    assert all(needs.strip() for needs in needs_attention(text))


@given(st.lists(st.from_regex(r"[A-Za-z0-9 .:!-]{0,20}[A-Za-z]", fullmatch=True), max_size=5))
def test_as_many_events_as_waited_are_named(texts: list[str]) -> None:
    """SPEC HB-13."""
    prompt = heartbeat_prompt("- [x] Tea", happened(*texts), "UTC")
    assert len(needs_attention(prompt)) == len(texts)


async def test_the_same_words_in_a_chat_are_no_heartbeat_run() -> None:
    result = await OfflineAgent().run(request("- [ ] Mail"), Events())
    assert "I am the offline agent" in result.text


async def said(service: ToolHost, text: str) -> str:
    """What it replies to a person. What was streamed is the same."""
    heard = Events()
    result = await OfflineAgent().run(replace(request(text), tools=service.tools()), heard)
    assert heard.text == result.text
    return result.text


@pytest.fixture
def heartbeat_runs() -> FakeHeartbeats:
    return FakeHeartbeats()


@pytest.fixture
def service(tmp_path: Path, heartbeat_runs: FakeHeartbeats) -> ToolHost:
    return ToolHost(tmp_path, heartbeats=heartbeat_runs)


@pytest.mark.parametrize(
    "phrase",
    [
        "add to the checklist: Look at the mail",
        "Add to my checklist Look at the mail",
        "add to checklist :  Look at\nthe mail",
        "add to your checklist:\nLook at the mail",
    ],
)
async def test_an_item_is_added(
    service: ToolHost, heartbeat_runs: FakeHeartbeats, phrase: str
) -> None:
    assert await said(service, phrase) == "On the checklist: “Look at the mail”."
    assert heartbeat_runs.items[MAIN_AGENT] == ["Look at the mail"]


@pytest.mark.parametrize("phrase", ["show the checklist", "Show checklist", "my checklist"])
async def test_the_list_is_shown(
    service: ToolHost, heartbeat_runs: FakeHeartbeats, phrase: str
) -> None:
    heartbeat_runs.items[MAIN_AGENT] = ["Mail", "Tea"]
    assert "\n2. Tea\n" in await said(service, phrase)


async def test_an_item_is_ticked_off(service: ToolHost, heartbeat_runs: FakeHeartbeats) -> None:
    heartbeat_runs.items[MAIN_AGENT] = ["Mail", "Tea"]
    assert await said(service, "Done 2") == "Ticked off: “Tea”."
    assert (await said(service, "done 2")).startswith("That did not work: there is no such item")
    assert (await said(service, "done 0")).startswith("That did not work: invalid arguments")
    assert heartbeat_runs.items[MAIN_AGENT] == ["Mail"]


async def test_how_the_heartbeat_stands_is_told(service: ToolHost) -> None:
    assert (await said(service, "heartbeat")).startswith("Heartbeat of main: ")


@pytest.mark.parametrize("phrase", ["done", "done two", "add to the checklist:", "checklists"])
async def test_what_is_no_phrase_changes_nothing(
    service: ToolHost, heartbeat_runs: FakeHeartbeats, phrase: str
) -> None:
    heartbeat_runs.items[MAIN_AGENT] = ["Mail", "Tea"]
    assert "I am the offline agent" in await said(service, phrase)
    assert heartbeat_runs.items[MAIN_AGENT] == ["Mail", "Tea"]


async def test_where_there_are_no_heartbeats_it_says_so(tmp_path: Path) -> None:
    reply = await said(ToolHost(tmp_path), "show the checklist")
    assert reply.startswith("That did not work: there is no tool 'heartbeat'")

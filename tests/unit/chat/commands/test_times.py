"""Times in chats have one style, whatever tells them (SPEC CMD-5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.core.ids import AgentName, HeartbeatRunId, JobId, Owner
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.targets import Maker, Route
from goclaw_py.core.time.texts import ChatZone
from goclaw_py.schedule.heartbeat import chat_texts, status_texts
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun, HeartbeatRunStatus
from goclaw_py.schedule.heartbeat.views import OWNER, HeartbeatView
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.models import Job, JobSpec, Prompt
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.testing.agents import Say, ScriptedAgent
from tests.support.harness import a_process

ANN = Target("telegram", "default", "ann")
BERLIN = "Europe/Berlin"
NOW = datetime(2026, 3, 3, 8, 0, 5, tzinfo=UTC)
DUE = NOW + timedelta(days=1)
SPEC = JobSpec("Tea", At(DUE), BERLIN, Prompt("tea"))
JOB = Job(JobId("j"), Owner("o"), Maker.PERSON, SPEC, NOW, NOW, next_run_at=DUE)
LAST = HeartbeatRun(
    HeartbeatRunId("b"),
    AgentName("main"),
    HeartbeatRunKind.INTERVAL,
    NOW,
    NOW,
    HeartbeatRunStatus.OK,
)
VIEW = HeartbeatView(
    Heartbeat(AgentName("main"), timedelta(minutes=30), next_at=DUE, muted_until=DUE),
    HeartbeatPolicy(zone=BERLIN),
    Route(ANN),
    NOW,
    last=LAST,
)

LISTS: Mapping[str, Callable[[ChatZone], list[str]]] = {
    "/jobs": lambda zone: texts.jobs([JOB], 1, zone, NOW, enabled=True).splitlines(),
    "/status": lambda zone: texts.next_jobs([JOB], zone, NOW, enabled=True),
}
SENTENCES: Mapping[str, Callable[[ChatZone], str]] = {
    "/jobs resume": lambda zone: texts.resumed(JOB, zone, NOW),
    "the button of a reminder": lambda zone: texts.snoozed("Tea", DUE, zone, NOW),
    "its second press": lambda zone: texts.already_snoozed("Tea", DUE, zone, NOW),
    "a late reminder": lambda zone: texts.reminder_late(
        texts.DueTimeText(DUE, DUE + timedelta(hours=1), zone)
    ),
    "a failed job": lambda zone: texts.job_failed("Tea", due(zone), "no", DUE),
    "a job that fails often": lambda zone: texts.job_failed_thrice("Tea", due(zone), "no", DUE),
    "an undelivered result": lambda zone: texts.undelivered("Tea", "", "no", "", due(zone)),
    "/mute": lambda zone: chat_texts.muted(VIEW, zone),
    "/heartbeat on": lambda zone: chat_texts.switched(VIEW, zone),
}
TIME = re.compile(
    r"\b(?:today|tomorrow|yesterday|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?: \d{1,2} [A-Z][a-z]{2})?"
    r"(?: \d{4})?) \d\d:\d\d"
)
CLOCK = re.compile(r"\d+:\d\d")


def due(zone: ChatZone) -> texts.DueTimeText:
    return texts.DueTimeText(DUE, NOW, zone)


def times(text: str) -> int:
    """How many times a text has; each is in the one style."""
    assert len(TIME.findall(text)) == len(CLOCK.findall(text)), text
    return len(TIME.findall(text))


@pytest.mark.parametrize("answer", SENTENCES)
def test_a_sentence_names_the_zone_that_nobody_has_chosen(answer: str) -> None:
    chosen = SENTENCES[answer](ChatZone(BERLIN))
    usual = SENTENCES[answer](ChatZone(BERLIN, is_chosen=False))
    assert times(chosen) == times(usual) >= 1
    assert BERLIN not in chosen
    assert usual.count(f" ({BERLIN})") == times(usual)
    assert usual.replace(f" ({BERLIN})", "") == chosen


@pytest.mark.parametrize("answer", LISTS)
def test_a_list_names_it_once_at_its_end(answer: str) -> None:
    chosen, zone = LISTS[answer](ChatZone(BERLIN)), ChatZone(BERLIN, is_chosen=False)
    usual = LISTS[answer](zone)
    assert times("\n".join(chosen)) == times("\n".join(usual)) >= 1
    assert BERLIN not in "\n".join(chosen)
    assert [line for line in usual if line not in chosen] == zone.note(usual)


def test_the_status_of_a_heartbeat_has_the_same_style() -> None:
    lines = "\n".join(status_texts.status_lines(VIEW, OWNER))
    assert times(lines) == 4
    assert BERLIN not in lines
    busy = replace(VIEW, current=replace(LAST, status=HeartbeatRunStatus.RUNNING))
    assert times(status_texts.why(busy, OWNER)[1]) == 2


async def test_all_commands_use_the_zone_of_the_chat() -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Say("hi"))) as gateway:
        usual = {one: await gateway.ask(one) for one in ("/usage", "/timezone")}
        for text in usual.values():
            assert "UTC" in text
        await gateway.ask("/timezone Asia/Kolkata")
        assert (await gateway.ask("/usage")).startswith("Used since today 05:30:\n")
        assert "Asia/Kolkata, where it is Fri 08:34." in await gateway.ask("/timezone")

"""Scripts are what their seed says, and the agent answers what is known beforehand."""

from __future__ import annotations

from collections import Counter

import pytest

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Trigger as RunTrigger
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import LoopEvent, RunRequest, TextPart
from tests.chaos import agent
from tests.chaos.agent import Task
from tests.chaos.script import ABOUT_STOPS, Script, Size, Trigger, script, triggers

FIRST_DRAFT_S = 0.8
FIRST_EDIT_S = 1.8


def first_of(made: Script) -> Task:
    """The victim's first message."""
    task = next(saying.task for saying in made.sayings if saying.user == made.victim)
    assert task is not None
    return task


def test_a_seed_always_means_the_same_and_another_one_something_else() -> None:
    again = [script("a", 3, Trigger.SENT, Size()) for _ in range(2)]
    assert again[0] == again[1]
    assert script("b", 3, Trigger.SENT, Size()) != again[0]
    assert triggers("a", 40) == triggers("a", 40) != triggers("b", 40)


def test_every_moment_comes_about_equally_often() -> None:
    counted = Counter(triggers("a", 3 * len(Trigger) + 1))
    assert set(counted) == set(Trigger)
    assert set(counted.values()) == {3, 4}


@pytest.mark.parametrize("trigger", list(Trigger))
def test_the_victim_writes_what_makes_the_moment_come(trigger: Trigger) -> None:
    for number in range(30):
        made = script("a", number, trigger, Size())
        seconds = first_of(made).seconds
        if trigger in (Trigger.SEND_BEFORE, Trigger.SEND_AFTER):
            assert seconds < FIRST_DRAFT_S
        elif trigger in (Trigger.EDIT_BEFORE, Trigger.EDIT_AFTER):
            assert seconds > FIRST_EDIT_S
        elif trigger in (Trigger.FINAL_BEFORE, Trigger.FINAL_AFTER):
            assert FIRST_DRAFT_S < seconds < FIRST_EDIT_S
        elif trigger in ABOUT_STOPS:
            stops = [s for s in made.sayings if s.task is None and s.user == made.victim]
            assert stops


def test_no_two_rounds_have_a_person_or_a_text_in_common() -> None:
    made = [script("a", number, Trigger.RANDOM, Size()) for number in range(50)]
    users = [user for one in made for user in one.users]
    assert len(set(users)) == len(users)
    tasks = [saying.task for one in made for saying in one.sayings if saying.task is not None]
    assert len({task.text for task in tasks}) == len(tasks)


def test_a_small_round_is_small_and_kills_once() -> None:
    size = Size(people=2, messages=2, second_kills=0.0, longest_s=1.3)
    for number in range(30):
        made = script("a", number, Trigger.SENT, size)
        assert len(made.users) == 2
        assert len([saying for saying in made.sayings if saying.task is not None]) <= 4
        assert made.kill_again is None


async def test_the_agent_says_word_by_word_what_its_task_means() -> None:
    task = Task(37, 3, 100)
    said: list[str] = []

    def emit(event: LoopEvent) -> None:
        assert isinstance(event, TextDelta)
        said.append(event.text)

    assert Task.of(task.prompt) == task
    assert await agent.run(_request(task.prompt), emit) == "m37 1 2 3" == task.text
    assert said == ["m37", " 1", " 2", " 3"]
    assert "no task" in await agent.run(_request("hello"), emit)


def _request(prompt: str) -> RunRequest:
    return RunRequest(
        RunId("run"),
        SessionKey("agent:main:telegram:direct:7"),
        AgentName("main"),
        RunTrigger.CHAT,
        (TextPart(prompt),),
    )

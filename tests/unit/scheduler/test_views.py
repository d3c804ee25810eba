"""What people are shown: who runs, who waits for what, and how the lanes are.

SPEC LANE-2, LANE-7, LANE-8, OPS-4, QUEUE-2, QUEUE-3, QUEUE-6, QUEUE-12.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, QueuePolicy
from goclaw_py.scheduler.texts import policy, waits_for, why
from goclaw_py.scheduler.views import WaitsFor
from tests.unit.scheduler.shell import GROUP, INTERRUPT, TYPING, Shell
from tests.unit.web import fakes


def test_lanes_are_shown_in_the_order_of_their_making() -> None:
    shell = Shell({"own": 1})
    shell.get_or_create("late", 1)
    names = [lane.name for lane in shell.scheduler.lanes()]
    assert names == ["main", "subagent", "delegate", "cron", "own", "late"]


def test_the_occupants_of_a_lane_are_those_who_hold_its_slots() -> None:
    """SPEC LANE-7, QUEUE-2: an abandoned run holds none."""
    shell = Shell({"main": 3})
    for name in ("deaf", "stopping", "finishing", "waits"):
        shell.submit(name, name)
    shell.stop("deaf")
    shell.wait(10)
    shell.stop("stopping")
    shell.finish("finishing")
    assert shell.occupants() == ["stopping", "finishing", "waits"]
    assert shell.occupants("cron") == []


def test_requests_that_have_started_are_counted_apart_from_those_that_wait() -> None:
    """SPEC QUEUE-2: for other nodes."""
    shell = Shell({"main": 2})
    assert shell.scheduler.counts() == (0, 0)
    for session in ("finishing", "stopping", "waits for the lane"):
        shell.submit(session, session)
    shell.submit("waits for its session", "stopping")
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.stop("stopping")
    shell.finish("finishing")
    views = shell.scheduler.runs(0)
    started = sum(view.waits_for is None for view in views)
    assert shell.scheduler.counts() == (started, len(views) - started) == (2, 3)


def test_a_session_shows_the_policy_of_its_newest_request_while_it_lives() -> None:
    shell = Shell()
    key = SessionKey("chat")
    assert shell.scheduler.policy(key) is None
    shell.submit("a", policy=GROUP)
    shell.submit("other", "other", policy=TYPING)
    shell.submit("now", policy=INTERRUPT)
    assert shell.scheduler.policy(key) is INTERRUPT
    shell.stop_all()
    shell.done("a")
    assert shell.scheduler.policy(key) is None


def test_a_burst_is_something_of_its_session() -> None:
    shell = Shell()
    assert not shell.scheduler.has_session(SessionKey("chat"))
    assert (shell.scheduler.runs(0), shell.scheduler.idle) == ((), True)
    shell.submit("a", sender="ann", policy=TYPING)
    assert shell.scheduler.has_session(SessionKey("chat"))
    assert not shell.scheduler.idle


def test_a_scheduler_is_busy_while_anything_is_left_that_was_not_given_up() -> None:
    """SPEC QUEUE-2, QUEUE-11: a shutdown does not wait for abandoned runs."""
    shell = Shell()
    busy = [shell.scheduler.busy]
    shell.submit("typed", sender="ann", policy=TYPING)
    busy.append(shell.scheduler.busy)
    shell.wait(0.8)
    shell.stop()
    busy.append(shell.scheduler.busy)
    shell.wait(10)
    busy.append(shell.scheduler.busy)
    assert busy == [False, True, True, False]
    assert not shell.scheduler.idle


def test_a_shell_learns_whether_the_next_timer_can_have_become_earlier() -> None:
    shell = Shell()
    seen = [shell.scheduler.timers_set]
    requests: dict[str, dict[str, Any]] = {
        "plain": {},
        "limited": {"run_timeout_s": 5},
        "late": {"deadline_s": 5},
        "typed": {"sender": "ann", "policy": TYPING},
    }
    for run_id, fields in requests.items():
        shell.submit(run_id, f"session {run_id}", **fields)
        seen.append(shell.scheduler.timers_set)
    shell.submit("more", "session typed", sender="ann", policy=TYPING)
    seen.append(shell.scheduler.timers_set)
    grows = [later > earlier for earlier, later in pairwise(seen)]
    assert grows == [False, True, True, True, False]


def test_a_run_must_not_wait_for_what_needs_its_end() -> None:
    """SPEC LANE-8: a run that waits later for one that nobody was to wait for."""
    shell = Shell({"main": 1})
    shell.submit("run", "one")
    shell.submit("same lane", "two", parent="run")
    shell.submit("same session", "one", parent="run", lane="cron")
    shell.submit("elsewhere", "three", parent="run", lane="subagent")
    asked = ("same lane", "same session", "elsewhere")
    would = shell.scheduler.would_wait_for
    assert [would(RunId("run"), RunId(name)) for name in asked] == [True, True, False]
    assert not would(RunId("run"), RunId("nobody"))
    assert not would(RunId("nobody"), RunId("run"))


# -------------------------------------------------- every reason and every wait has words


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_said_in_words(reason: Reason) -> None:
    words = why(Outcome.DROPPED, reason, None)
    assert words.startswith("dropped: ")
    assert len(words.split()) > 3


def test_no_two_reasons_have_the_same_words() -> None:
    assert len({why(Outcome.DROPPED, reason, None) for reason in Reason}) == len(Reason)


@pytest.mark.parametrize("outcome", Outcome)
def test_an_end_without_a_reason_leads_to_its_run(outcome: Outcome) -> None:
    assert why(outcome, None, "r1").endswith("; see: goclaw runs show r1")
    assert why(outcome, None, None)


def test_what_has_no_end_is_not_done() -> None:
    assert why(None, None, "r1") == "not finished"


@pytest.mark.parametrize(
    ("what", "named"),
    [
        (WaitsFor.SENDER, "sender"),
        (WaitsFor.SESSION, "session"),
        (WaitsFor.AGENT, "agent writer"),
        (WaitsFor.LANE, "lane main"),
        (WaitsFor.PARENT, "parent 0190-pppp"),
    ],
)
def test_a_wait_names_what_is_waited_for(what: WaitsFor, named: str) -> None:
    run = replace(
        fakes.WAITING, waits_for=what, agent=AgentName("writer"), parent=RunId("0190-pppp")
    )
    assert named in waits_for(run)


def test_what_has_started_waits_for_nothing() -> None:
    assert waits_for(fakes.RUNNING) == ""


def test_a_policy_says_how_many_may_wait_and_who_goes_then() -> None:
    assert policy(QueuePolicy(capacity=3)) == (
        "mode queue, 1 at once, at most 3 waiting, then the oldest is dropped"
    )
    assert policy(QueuePolicy(drop=Drop.NEW)).endswith("new ones are rejected")


def test_no_limit_is_not_told_as_a_number() -> None:
    without_limit = policy(QueuePolicy(capacity=sys.maxsize))
    assert without_limit == "mode queue, 1 at once, no limit of waiting messages"

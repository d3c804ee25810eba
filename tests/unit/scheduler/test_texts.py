"""Every reason and every wait has words (SPEC OPS-4)."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from goclaw_py.model.ids import AgentName, RunId
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, QueuePolicy
from goclaw_py.scheduler.texts import policy, waits_for, why
from goclaw_py.scheduler.views import WaitsFor
from tests.unit.web import fakes


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

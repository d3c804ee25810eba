"""Facts that break exactly one rule each, and the facts beside them that break none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from goclaw_py.chat.outbound import texts
from tests.chaos.facts import (
    Claim,
    Facts,
    HeartbeatFact,
    Message,
    Occurrence,
    Post,
    Run,
    Said,
    Seen,
    Timetable,
    Worked,
    names,
)
from tests.chaos.invariants import Rule, broken
from tests.support.again import SENT_AGAIN

ANN, DAY_S = "ann", 24 * 3600.0
SESSION = "agent:main:telegram:direct:ann"
NODE, OTHER = "n1", "n2"


def run(key: str, started: float, ended: float | None, outcome: str | None = "completed") -> Run:
    return Run(key, SESSION, NODE, "chat", started, ended, outcome)


def job_run(key: str, started: float, ended: float, outcome: str = "completed") -> Run:
    return Run(key, f"cron:{key}", NODE, "cron", started, ended, outcome, occurrence="o1")


def post(key: int, text: str, run: str | None = None, *, state: str = "sent") -> Post:
    return Post(key, ANN, text, state, run=run)


def alert(key: int, created: float, heartbeat_run: str | None = None) -> Post:
    words = "the disk is full"
    return Post(key, ANN, words, "sent", alert="disk", created=created, heartbeat_run=heartbeat_run)


FIRST = Message(1, SESSION, ANN, "m1", "completed", run="r1")
SECOND = Message(2, SESSION, ANN, "m2", "completed", run="r2")
STOP = Message(3, SESSION, ANN, "/stop", "completed", command=True)
HOURLY = Occurrence("o1", "hourly", 60.0, "ok", ended=True)
TOLD = replace(post(9, "an hour is over", "j1"), occurrence="o1")

GOOD = Facts(
    said=(Said(ANN, "m1"), Said(ANN, "m2"), Said(ANN, "/stop")),
    messages=(FIRST, SECOND, STOP),
    runs=(run("r1", 1, 2), run("r2", 2, 3), job_run("j1", 60, 61)),
    worked=(Worked("r1", SESSION, 1.0, 2.0), Worked("r2", SESSION, 2.0, 3.0)),
    posts=(post(1, "re: m1", "r1"), post(2, "re: m2", "r2"), post(3, texts.NOTHING_RUNNING), TOLD),
    seen=(
        Seen(ANN, "11", "re: m1", 2.1),
        Seen(ANN, "12", "re: m2", 3.1),
        Seen(ANN, "13", texts.NOTHING_RUNNING, 3.2),
        Seen(ANN, "21", "an hour is over", 61.1),
    ),
    occurrences=(HOURLY,),
    heartbeat_runs=(HeartbeatFact("b1", "main", "ok", ended=True),),
    timetables=(Timetable("hourly", 60.0, 3600.0),),
    nobody_fell=True,
)
"""Everything as it should be."""


good = partial(replace, GOOD)


def rules(facts: Facts) -> list[Rule]:
    return [breach.rule for breach in broken(facts)]


def more(facts: Facts = GOOD, **added: Sequence[object]) -> Facts:
    """The same with more of these."""
    return replace(facts, **{name: (*getattr(facts, name), *new) for name, new in added.items()})  # type: ignore[arg-type]


def seen_too(text: str, at: float = 4.0, chat: str = ANN) -> Facts:
    return more(seen=[Seen(chat, "14", text, at)])


def first(outcome: str, *, posts: Sequence[Post] = (), **changes: object) -> Facts:
    """The first message and its run ended so; of its answer only these posts are there."""
    texts = [Seen(ANN, "11", one.text, 2.1) for one in posts]
    return good(
        messages=(replace(FIRST, outcome=outcome, **changes), SECOND, STOP),  # type: ignore[arg-type]
        runs=(run("r1", 1, 2, outcome), *GOOD.runs[1:]),
        posts=(*posts, *GOOD.posts[1:]),
        seen=(*texts, *GOOD.seen[1:]),
    )


def without_told(**changes: object) -> Facts:
    """Nobody heard of the time of the job."""
    return good(posts=GOOD.posts[:3], seen=GOOD.seen[:3], **changes)


def test_good_facts_break_nothing() -> None:
    assert broken(GOOD) == []
    assert broken(Facts()) == []


def test_names_are_words() -> None:
    assert names("re: m1\nm22, xm3 m4x") == {"m1", "m22"}


def later(key: str, scheduled: float) -> Facts:
    """Another time of the job, as it should be; the job has counted none."""
    text = f"the hour of {scheduled:g} s"
    return more(
        occurrences=[replace(HOURLY, id=key, scheduled=scheduled)],
        posts=[replace(post(10, text), occurrence=key)],
        seen=[Seen(ANN, "22", text, scheduled)],
    )


def alerted(*posts: Post, status: str = "alerted") -> Facts:
    """Beat ``b1`` ended so, with these alerts."""
    facts = good(heartbeat_runs=(HeartbeatFact("b1", "main", status, ended=True),))
    heard = [Seen(ANN, f"3{one.id}", one.text, one.created + 1) for one in posts]
    return more(facts, posts=posts, seen=heard)


def cancelled(reason: str, *, stop: Message | None = STOP) -> Facts:
    """The first message was stopped, for this reason."""
    facts = first("cancelled", reason=reason)
    commands = () if stop is None else (stop,)
    said = tuple(Said(row.chat, row.text) for row in (FIRST, SECOND, *commands))
    return replace(facts, said=said, messages=(*facts.messages[:2], *commands))


def worked_beside(lost: Worked, outcome: str = "lost") -> Facts:
    """Run ``r0`` was lost at 2 s, and its message ran anew from then on; so its agent noted it."""
    again = replace(GOOD.runs[0], node=OTHER, started=2.0, ended=2.5)
    second = replace(GOOD.runs[1], node=OTHER, started=2.5)
    return good(
        runs=(run("r0", 1, 2, outcome), again, second, GOOD.runs[2]),
        worked=(lost, Worked("r1", SESSION, 2.0, 2.5), Worked("r2", SESSION, 2.5, 3.0)),
    )


def worked(began: float, ended: float | None, **how: Any) -> Worked:
    return Worked("r0", SESSION, began, ended, **how)


SENT_TWICE = good(posts=(replace(GOOD.posts[0], possible_duplicate=True, sends=2), *GOOD.posts[1:]))
GIVEN_UP = replace(FIRST, place=4, text="m4", outcome="lost", run="r4")
SKIPPED = replace(HOURLY, id="o0", scheduled=HOURLY.scheduled - 1, status="skipped")
DISK = "the disk is full"

BREACHES = {
    "failed in silence": (Rule.ANSWERED, first("failed")),
    "cancelled where nobody has stopped anything": (
        Rule.STOPPED_UNASKED,
        cancelled("stopped", stop=None),
    ),
    "cancelled by a newer message that is not there": (
        Rule.STOPPED_UNASKED,
        good(
            messages=(FIRST, replace(SECOND, outcome="cancelled", reason="newer_message"), STOP),
            runs=(GOOD.runs[0], run("r2", 2, 3, "cancelled"), GOOD.runs[2]),
            posts=(GOOD.posts[0], *GOOD.posts[2:]),
            seen=(GOOD.seen[0], *GOOD.seen[2:]),
        ),
    ),
    "a stop of which nobody hears": (
        Rule.STOP_ANSWERED,
        good(posts=(*GOOD.posts[:2], TOLD), seen=(*GOOD.seen[:2], GOOD.seen[3])),
    ),
    "a message that runs after a stop of everything": (
        Rule.RAN_AFTER_STOP,
        good(
            said=(*GOOD.said[:2], Said(ANN, "/stopall")),
            messages=(FIRST, SECOND, replace(STOP, text="/stopall", ended=1.5)),
        ),
    ),
    "a message that runs after its end": (
        Rule.RAN_AFTER_END,
        good(
            messages=(replace(FIRST, ended=0.5), SECOND, STOP),
            worked=(replace(GOOD.worked[0], prompt="m1"), GOOD.worked[1]),
        ),
    ),
    "a message that was held until its node ended": (
        Rule.ONE_OUTCOME,
        good(messages=(replace(FIRST, ended=4.0), SECOND, STOP), settled=3.0),
    ),
    "a message that was held for too long, in silence": (
        Rule.ANSWERED,
        first("failed", reason="outage", ended=4.0),
    ),
    "the answer of a run that was lost": (
        Rule.LOST_AND_HEARD,
        replace(
            seen_too("re: m1", 1.5),
            runs=(run("r0", 0, 1, "lost"), *GOOD.runs),
            posts=(post(0, "re: m1", "r0"), *GOOD.posts),
        ),
    ),
    "a time of a job that is told twice": (
        Rule.OCCURRENCE_ONCE,
        more(posts=[replace(TOLD, id=10)], seen=[Seen(ANN, "22", TOLD.text, 62.0)]),
    ),
    "a time of a job that ended well and of which nobody heard": (
        Rule.OCCURRENCE_TOLD,
        without_told(),
    ),
    "a time of a job that ended well without a run that did": (
        Rule.OCCURRENCE_TOLD,
        good(runs=(*GOOD.runs[:2], job_run("j1", 60, 61, "failed"))),
    ),
    "a job that never came": (
        Rule.OCCURRENCE_MISSED,
        without_told(runs=GOOD.runs[:2], occurrences=()),
    ),
    "a time between two that never came": (Rule.OCCURRENCE_MISSED, later("o3", 60 + 7200)),
    "a time that is not one of its job": (Rule.OCCURRENCE_MISSED, later("o3", 60 + 3700)),
    "a heartbeat run that alerted nobody": (Rule.ALERT_TOLD, alerted()),
    "an alert of a heartbeat run that has none": (
        Rule.ALERT_TOLD,
        alerted(alert(4, 50, "b1"), status="ok"),
    ),
    "one alert too many of a heartbeat run": (
        Rule.ALERT_TOLD,
        alerted(alert(4, 50, "b1"), replace(alert(5, 60, "b1"), alert="too", text="and dusty")),
    ),
    "more messages than its row was sent": (
        Rule.SEEN_TWICE,
        more(SENT_TWICE, seen=[Seen(ANN, "14", "re: m1", 4.0), Seen(ANN, "15", "re: m1", 5.0)]),
    ),
    "confirmed, but not in the inbox": (Rule.ACCEPTED_ONCE, more(said=[Said(ANN, "m4")])),
    "kept twice": (Rule.ACCEPTED_ONCE, more(messages=[replace(SECOND, place=4)])),
    "waits for ever": (
        Rule.ONE_OUTCOME,
        good(messages=(FIRST, SECOND, replace(STOP, outcome=None))),
    ),
    "completed without an answer": (Rule.ANSWERED, good(posts=GOOD.posts[1:], seen=GOOD.seen[1:])),
    "answered by a run that did not complete": (
        Rule.ANSWERED,
        good(runs=(run("r1", 1, 2, "failed"), *GOOD.runs[1:])),
    ),
    "given up without a word": (
        Rule.ANSWERED,
        good(messages=(FIRST, SECOND, GIVEN_UP), said=(*GOOD.said[:2], Said(ANN, "m4"))),
    ),
    "answered by two runs": (
        Rule.ANSWERED_ONCE,
        more(seen_too("again: m1"), posts=[post(4, "again: m1", "r2")]),
    ),
    "answered although it was stopped": (
        Rule.ANSWERED_ONCE,
        good(messages=(replace(FIRST, outcome="cancelled"), SECOND, STOP)),
    ),
    "the later one first": (
        Rule.ORDER,
        good(runs=(run("r1", 2, 3), run("r2", 1, 2), GOOD.runs[2]), worked=()),
    ),
    "two stored runs of a session at a time": (
        Rule.RUNS_OVERLAP,
        good(runs=(run("r1", 1, 2.5), run("r2", 2, 3), GOOD.runs[2])),
    ),
    "one stored run within a longer one before the last": (
        Rule.RUNS_OVERLAP,
        good(runs=(run("r1", 1, 1.5), run("r2", 2, 9), run("r3", 5, 6), GOOD.runs[2])),
    ),
    "two runs for one time of a job at a time": (
        Rule.RUNS_OVERLAP,
        more(runs=[job_run("j2", 60.5, 62, "failed")]),
    ),
    "two agents in a session at a time": (
        Rule.WORK_OVERLAPS,
        good(worked=(Worked("r1", SESSION, 1.0, 2.5), GOOD.worked[1])),
    ),
    "one that was stopped, in a process that is cut off and works on": (
        Rule.WORK_OVERLAPS,
        worked_beside(worked(1.0, 2.1), "cancelled"),
    ),
    "one that was interrupted, and nobody told it": (
        Rule.WORK_OVERLAPS,
        worked_beside(worked(1.0, 2.1), "interrupted"),
    ),
    "a process that is cut off and works on": (Rule.WORK_OVERLAPS, worked_beside(worked(1.0, 2.1))),
    "an agent that is told to end too late": (
        Rule.WORK_OVERLAPS,
        worked_beside(worked(1.0, 9.0, told=2.1)),
    ),
    "a process that stood still and whose run was not lost": (
        Rule.WORK_OVERLAPS,
        good(worked=(Worked("r1", SESSION, 1.0, 2.5, stood_still=True), GOOD.worked[1])),
    ),
    "an agent that works for a run which is not stored": (
        Rule.WORK_OVERLAPS,
        more(worked=[Worked("r9", SESSION, 1.5, 1.6)]),
    ),
    "two rows for a time of a job": (
        Rule.OCCURRENCE_ONCE,
        more(occurrences=[replace(HOURLY, id="o2", status="failed")]),
    ),
    "a time of a job that was skipped, and due again": (
        Rule.OCCURRENCE_SKIPPED,
        good(occurrences=(SKIPPED, HOURLY)),
    ),
    "a time of a job that completed twice": (
        Rule.OCCURRENCE_ONCE,
        more(runs=[job_run("j2", 62, 63)]),
    ),
    "the same alert within a day": (
        Rule.ALERT_ONCE,
        more(
            posts=[alert(4, 100), alert(5, 100 + DAY_S - 1)],
            seen=[Seen(ANN, "14", DISK, 101), Seen(ANN, "15", DISK, DAY_S)],
        ),
    ),
    "a repeated message without a line that says so": (
        Rule.SEEN_TWICE,
        more(SENT_TWICE, seen=[Seen(ANN, "14", "re: m1", 4.0)]),
    ),
    "a second message with the same text": (Rule.SEEN_TWICE, seen_too("re: m1")),
    "words that nobody said": (Rule.SEEN_UNSAID, seen_too("boo")),
    "words that were said elsewhere": (Rule.SEEN_UNSAID, seen_too("re: m1", chat="bob")),
    "an answer to a stop where nobody stopped anything": (
        Rule.SEEN_UNSAID,
        seen_too("Stopped.", chat="bob"),
    ),
    "sent into nothing": (Rule.UNSEEN, good(seen=GOOD.seen[1:])),
    "the second reply before the first": (
        Rule.SENT_IN_ORDER,
        good(seen=(replace(GOOD.seen[0], at=3.15), *GOOD.seen[1:])),
    ),
    "the result of a job before an answer that is much older": (
        Rule.SENT_IN_ORDER,
        good(
            posts=(*GOOD.posts[:3], replace(TOLD, created=61.0)),
            seen=(*GOOD.seen[:3], replace(GOOD.seen[3], at=1.0)),
        ),
    ),
    "a run without an end": (Rule.LEFT_BEHIND, more(runs=[run("r3", 3, None, None)])),
    "a reply that is still being sent": (
        Rule.LEFT_BEHIND,
        more(posts=[post(4, "late", state="sending")]),
    ),
    "a time of a job that has not ended": (
        Rule.LEFT_BEHIND,
        good(occurrences=(replace(HOURLY, status="running", ended=False),)),
    ),
    "a heartbeat run that has not ended": (
        Rule.LEFT_BEHIND,
        good(heartbeat_runs=(HeartbeatFact("b2", "main", "deferred", ended=False),)),
    ),
    "a session of a node that has ended": (
        Rule.LEFT_BEHIND,
        good(claims=(Claim("session", SESSION, OTHER),)),
    ),
    "a lease": (Rule.LEFT_BEHIND, good(claims=(Claim("lease", "telegram", NODE),))),
    "a node": (Rule.LEFT_BEHIND, good(claims=(Claim("node", NODE, NODE),))),
    "a draft of nobody": (Rule.LEFT_BEHIND, good(claims=(Claim("draft", "r1", None),))),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_found_and_no_other_with_it(name: str) -> None:
    rule, facts = BREACHES[name]
    assert rules(facts) == [rule]


def test_every_rule_can_be_broken() -> None:
    assert {rule for rule, _ in BREACHES.values()} == set(Rule)


CLOSED = "⚠️ This answer was cut off."
ALLOWED = {
    "stopped by somebody": cancelled("stopped"),
    "stopped by a newer message": cancelled("newer_message", stop=None),
    "a stop without an answer where a process fell": good(
        nobody_fell=False, posts=(*GOOD.posts[:2], TOLD), seen=(*GOOD.seen[:2], GOOD.seen[3])
    ),
    "a draft of a lost run that is closed": good(
        runs=(run("r0", 0, 1, "lost"), *GOOD.runs),
        posts=(replace(post(0, CLOSED, "r0"), draft=True), *GOOD.posts),
        seen=(Seen(ANN, "10", CLOSED, 1.5), *GOOD.seen),
    ),
    "an answer before the result of a job that was stored at the same time": good(
        posts=(replace(TOLD, id=0, created=2.0), *GOOD.posts[:3]),
    ),
    "a failure that is told": first("failed", posts=[post(1, texts.FAILED, "r1")]),
    "a message that was held for too long": first(
        "failed", reason="outage", ended=4.0, posts=[replace(post(1, "It is down."), created=4.0)]
    ),
    "a time of a job that came while one before it ran": replace(
        later("o3", 60 + 7200), timetables=(Timetable("hourly", 60.0, 3600.0, counted=1),)
    ),
    "a job that comes later after a failure": replace(
        later("o3", 60 + 7200),
        occurrences=(HOURLY, Occurrence("o3", "hourly", 7260.0, "lost", ended=True)),
    ),
    "a heartbeat run that alerted": alerted(alert(4, 50, "b1")),
    "an alert that is told elsewhere": alerted(
        replace(alert(4, 50, "b1"), state="dead"), alert(5, 60)
    ),
    "one answer for two messages": good(
        messages=(FIRST, replace(SECOND, run="r1")),
        said=GOOD.said[:2],
        runs=GOOD.runs[:1],
        worked=GOOD.worked[:1],
        posts=(post(1, "re: m1\nm2", "r1"), TOLD),
        seen=(Seen(ANN, "11", "re: m1\nm2", 2.1), GOOD.seen[3]),
        nobody_fell=False,
    ),
    "a second message whose row and last line say so": more(
        SENT_TWICE, seen=[Seen(ANN, "14", "re: m1" + SENT_AGAIN, 4.0)]
    ),
    "a run that takes no time before another one": good(
        runs=(run("r2", 2, 3), run("r1", 2, 2), GOOD.runs[2]),
        worked=(Worked("r2", SESSION, 2.0, 3.0), Worked("r1", SESSION, 2.0, 2.0)),
    ),
    "an answer to a stop, which no row tells of": seen_too("Stopped 2 tasks."),
    "an edit to the same words": more(seen=[Seen(ANN, "11", "re: m1", 4.0)]),
    "one that crashed twice comes last": good(
        messages=(replace(FIRST, attempts=3), SECOND, STOP),
        runs=(run("r1", 3, 4), run("r2", 2, 3), GOOD.runs[2]),
        posts=(post(2, "re: m1", "r1"), post(1, "re: m2", "r2"), *GOOD.posts[2:]),
        seen=(Seen(ANN, "12", "re: m1", 3.15), Seen(ANN, "11", "re: m2", 3.1), *GOOD.seen[2:]),
        worked=(),
    ),
    "one in a turn with one that crashed twice comes last": good(
        said=(Said(ANN, "m0"), *GOOD.said),
        messages=(replace(FIRST, place=0, text="m0", attempts=3), FIRST, SECOND, STOP),
        runs=(run("r1", 3, 4), run("r2", 2, 3), GOOD.runs[2]),
        posts=(post(2, "re: m0\nm1", "r1"), post(1, "re: m2", "r2"), *GOOD.posts[2:]),
        seen=(Seen(ANN, "12", "re: m0\nm1", 3.15), Seen(ANN, "11", "re: m2", 3.1), *GOOD.seen[2:]),
        worked=(),
    ),
    "a message that was given up and whose sender knows it": first(
        "lost", posts=[post(1, texts.LOST)]
    ),
    "a frozen process that goes on with what was lost": worked_beside(
        worked(1.0, 9.0, stood_still=True)
    ),
    "one that was being stopped when its node was declared dead": worked_beside(
        worked(1.0, 9.0, told=1.5), "cancelled"
    ),
    "one that does not care that its process ends": worked_beside(
        worked(1.0, 9.0, told=1.5), "interrupted"
    ),
    "an agent that does not care that it is told to end": worked_beside(worked(1.0, 9.0, told=2.0)),
    "one that was killed at work": good(worked=(Worked("r1", SESSION, 1.0, None), GOOD.worked[1])),
    "a time of a job that runs again after a crash": good(
        runs=(*GOOD.runs[:2], job_run("j0", 60, 70, "lost"), job_run("j1", 71, 72))
    ),
    "a job that is started by hand when it is due": replace(
        later("o2", 62), occurrences=(HOURLY, replace(HOURLY, id="o2", manual=True))
    ),
    "the same alert a day later": more(
        posts=[alert(4, 100), alert(5, 100 + DAY_S)],
        seen=[Seen(ANN, "14", DISK, 101), Seen(ANN, "15", DISK, 101 + DAY_S)],
    ),
    "a reply that can never be delivered": more(posts=[post(4, "for nobody", state="dead")]),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_breaks_nothing(name: str) -> None:
    assert broken(ALLOWED[name]) == []

"""What people decide of a job, and what no job may have.

SPEC CRON-0, CRON-13, CRON-14, CRON-15, CRON-17, SEC-3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import AgentName, JobId, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker, chat_of, owner_of
from goclaw_py.schedule.jobs.models import (
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    SLUG,
    FixedMessage,
    Job,
    JobSpec,
    Payload,
    Program,
    Prompt,
    checked,
    may_schedule,
    slug_for,
    timing,
)
from goclaw_py.schedule.jobs.policy import PROFILES, Anchor, FirstRun, JobPolicy
from goclaw_py.schedule.jobs.schedule import Every, Timing

NOON = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)
HOURLY = Every(timedelta(hours=1))


def spec(**facts: Any) -> JobSpec:
    return replace(JobSpec("water", HOURLY, "UTC", Prompt("water them")), **facts)


def job(maker: Maker = Maker.OPERATOR, **facts: Any) -> Job:
    return Job(JobId("j"), Owner("o"), maker, spec(**facts), NOON, NOON)


def test_a_job_is_called_by_its_name_or_else_by_its_slug() -> None:
    assert spec().title == "water"
    assert spec(name="Water the plants").title == "Water the plants"
    # Blanks in a name are put in order; all characters but control ones are allowed.
    assert checked(spec(name="  Water \n the\tplants ")).name == "Water the plants"
    named = spec(name="Café \U0001f469\u200d\U0001f680 \u200f\u05e9", target=Target("a", "b", "#ü"))
    assert checked(named) == named
    own = spec(session="agent:main:x", policy={"session": "key"}, max_runs=1)
    assert checked(own) == own


@pytest.mark.parametrize(("text", "slug"), [
    ("Water the plants", "water-the-plants"),
    ("  Müll & rausbringen!  ", "muell-rausbringen"),
    ("9:00", "9-00"), ("-- x --", "x"), ("水をやる", "shui-oyaru"),
    ("Grüße 日本", "gruesse-ri-ben"),
    ("Gru\u0308\u00dfe", "gruesse"), ("Полить цветы", "polit-tsvety"),
    ("Café ☕ à deux", "cafe-a-deux"), ("☕", "job"), ("", "job"), ("a" * 300, "a" * 40),
    ("one two three four five six seven eight nine ten", "one-two-three-four-five-six-seven-eight"),
    ("short " + "a" * 60, "short"),
])  # fmt: skip
def test_a_slug_is_made_of_the_first_words(text: str, slug: str) -> None:
    assert slug_for(text) == slug


def test_a_slug_that_is_taken_gets_the_next_number() -> None:
    assert slug_for("Water", {"water"}) == "water-2"
    assert slug_for("Water", frozenset({"water", "water-2", "water-3"})) == "water-4"
    assert slug_for("Water", {"water-2"}) == "water"


@given(st.text(max_size=300), st.sets(st.sampled_from(["job", "job-2", "a", "a-2", "b"])))
def test_any_text_gives_a_slug_that_is_allowed_and_free(text: str, taken: set[str]) -> None:
    slug = slug_for(text, taken)
    assert SLUG.fullmatch(slug)
    assert slug not in taken


@pytest.mark.parametrize(("target", "peer", "owner"), [
    (Target("telegram", "default", "42"), PeerKind.DIRECT, "telegram:direct:42"),
    (Target("telegram", "default", "-7", "9"), PeerKind.GROUP, "telegram:group:-7"),
    (Target("telegram", "work", "42"), PeerKind.DIRECT, "telegram.work:direct:42"),
])  # fmt: skip
def test_jobs_belong_to_the_chat_of_their_making(
    target: Target, peer: PeerKind, owner: str
) -> None:
    assert owner_of(target, peer) == owner


@pytest.mark.parametrize("account", ["default", "work", "a.b"])
@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("chat", ["42", "-7", "a:b", ".", "direct:1"])
def test_an_owner_tells_the_chat_that_it_is(account: str, peer: PeerKind, chat: str) -> None:
    target = Target("telegram", account, chat)
    assert chat_of(owner_of(target, peer)) == (target, peer)
    assert chat_of(owner_of(replace(target, thread="9"), peer)) == (target, peer)


@pytest.mark.parametrize("owner", [
    "operator", "library", "", "telegram", "telegram:direct", "telegram:direct:", ":direct:42",
    ".work:direct:42", "telegram.:direct:42", "telegram.default:direct:42", "telegram:channel:42",
    "telegram:DIRECT:42",
])  # fmt: skip
def test_an_owner_that_is_no_chat_tells_none(owner: str) -> None:
    assert chat_of(Owner(owner)) is None


def test_a_slug_of_other_characters_is_refused() -> None:
    for slug in ("a", "0", "a_b-c", "a" * 64):
        assert checked(spec(slug=slug)).slug == slug
    for slug in ("", "-a", "_a", "A", "a b", "a/b", "../a", "ä", "a" * 65, "a\n", "a.b"):
        with pytest.raises(BadJob, match="slug: must be 1 to 64 characters"):
            checked(spec(slug=slug))


@pytest.mark.parametrize(("said", "payloads"), [
    ("prompt: must not be empty", [Prompt(""), Prompt(" \n")]),
    ("message: must not be empty", [FixedMessage("")]),
    ("prompt: may have at most 100,000 characters", [Prompt("x" * (MAX_TEXT_CHARS + 1))]),
    ("message: may have at most 100,000 characters", [FixedMessage("x" * 1_000_000)]),
    ("command: must be a program and its arguments", [
        Program(()), Program(("", "x")), Program(("ls", "a\0b")), Program(("ls", "a\ud800")),
    ]),
    ("prompt: must not contain NUL characters or unpaired surrogates", [Prompt("a\0b")]),
    ("message: must not contain NUL characters or unpaired surrogates", [FixedMessage("a\ud83d")]),
])  # fmt: skip
def test_a_payload_that_says_nothing_or_too_much_is_refused(
    said: str, payloads: list[Payload]
) -> None:
    for payload in payloads:
        with pytest.raises(BadJob, match=re.escape(said)):
            checked(spec(payload=payload))


@pytest.mark.parametrize(
    "payload",
    [Prompt("x" * MAX_TEXT_CHARS), FixedMessage(" x\n\t\x1b👩‍🚀 "), Program(("ls", "", "a\nb"))],
)
def test_a_payload_is_kept_as_it_is_written(payload: Payload) -> None:
    """SPEC AGENT-7: the prompt is given unchanged."""
    assert checked(spec(payload=payload)).payload == payload


@pytest.mark.parametrize(("facts", "said"), [
    ({"name": "x" * (MAX_NAME_CHARS + 1)}, "name: may have at most 200 characters"),
    ({"max_runs": 0}, "max_runs: must be at least 1"),
    ({"max_runs": 10**10}, "max_runs: must be at least 1"),
    ({"session": "agent:main:x"}, 'session: a session key needs the policy session = "key"'),
    ({"policy": {"session": "key"}}, 'session: a session key needs the policy session = "key"'),
    ({"policy": {"retries": 99}}, "retries: must be a whole number from 0 to 10"),
    ({"policy": {"retry": 1}}, "retry: no such key"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(facts: Mapping[str, object], said: str) -> None:
    with pytest.raises(BadJob, match=re.escape(said)):
        checked(spec(**facts))


@pytest.mark.parametrize("bad", ["\0", "\x1b", "\x7f", "\x9b", "\ud800"])
@pytest.mark.parametrize(("key", "facts"), [
    ("name", lambda bad: {"name": f"a{bad}b"}),
    ("zone", lambda bad: {"zone": f"UTC{bad}"}),
    ("agent", lambda bad: {"agent": AgentName(f"a{bad}")}),
    ("source", lambda bad: {"source": f"a{bad}"}),
    ("session", lambda bad: {"session": f"{bad}a", "policy": {"session": "key"}}),
    ("model", lambda bad: {"payload": Prompt("x", f"openai:{bad}")}),
    ("target", lambda bad: {"target": Target(f"a{bad}", "b", "c")}),
    ("target", lambda bad: {"target": Target("a", f"b{bad}", "c")}),
    ("target", lambda bad: {"target": Target("a", "b", f"c{bad}", "d")}),
    ("target", lambda bad: {"target": Target("a", "b", "c", f"{bad}")}),
])  # fmt: skip
def test_no_name_in_a_job_has_control_characters(
    bad: str, key: str, facts: Callable[[str], dict[str, Any]]
) -> None:
    """SPEC SEC-3: they would stand in logs, tables and the keys of sessions."""
    with pytest.raises(BadJob, match=f"^{key}: must not contain control characters$"):
        checked(spec(**facts(bad)))


@pytest.mark.parametrize("bad", ["\n", "\t", "\u2028"])
def test_ends_of_lines_are_no_part_of_a_session_or_a_target(bad: str) -> None:
    for facts in ({"target": Target("a", "b", bad)}, {"source": f"a{bad}"}):
        with pytest.raises(BadJob, match="must not contain control characters"):
            checked(spec(**facts))


@pytest.mark.parametrize(("allowed", "item", "payload", "expected"), [
    (True, False, Prompt("x"), True),
    (False, False, Prompt("x"), False),
    (True, True, Prompt("x"), False),
    (True, False, Program(("ls",)), False),
])  # fmt: skip
@pytest.mark.parametrize("maker", list(Maker))
def test_a_scheduled_run_schedules_if_it_may_and_no_stranger_says_what_to_do(
    maker: Maker, *, allowed: bool, item: bool, payload: Payload, expected: bool
) -> None:
    """SPEC CRON-18, SEC-3: a work item holds what anybody may have written."""
    policy = JobPolicy(tools_in_runs=allowed)
    assert may_schedule(job(maker, payload=payload), policy, item=item) is expected


def test_a_job_behaves_as_the_settings_say_but_for_its_own_keys() -> None:
    base = PROFILES["halo"].policy
    assert job().policy(base) == base
    assert job(policy={"retries": 2}).policy(base) == replace(base, retries=2)


def test_the_rules_for_models_hold_whatever_the_job_says() -> None:
    own = {"min_interval": 1, "delete_after_run": True, "auto_disable_after": 0}
    policy = job(Maker.MODEL, policy=own).policy(JobPolicy())
    assert (policy.min_interval, policy.delete_after_run) == (60, False)
    assert policy.auto_disable_after == 5
    assert job(Maker.PERSON, policy=own).policy(JobPolicy()).min_interval == 1


@pytest.mark.parametrize(("maker", "base_s", "own_s", "least_s"), [
    (Maker.OPERATOR, 3600, None, 3600), (Maker.OPERATOR, 3600, 30, 30),
    (Maker.OPERATOR, 3600, 0, 1), (Maker.OPERATOR, 0, None, 1),
    (Maker.PERSON, 3600, None, 3600), (Maker.PERSON, 3600, 30, 3600),
    (Maker.PERSON, 3600, 7200, 7200), (Maker.PERSON, 0.25, 0, 1), (Maker.MODEL, 3600, 1, 3600),
    (Maker.MODEL, 3600, 7200, 7200), (Maker.MODEL, 1, 1, 60), (Maker.MODEL, 1, 90, 90),
])  # fmt: skip
def test_only_operators_allow_a_job_to_be_more_frequent_than_the_settings_do(
    maker: Maker, base_s: float, own_s: float | None, least_s: float
) -> None:
    """SPEC CRON-15: and nobody more than once a second."""
    own = {} if own_s is None else {"min_interval": own_s}
    policy = job(maker, policy=own).policy(JobPolicy(min_interval=base_s))
    assert policy.min_interval == least_s


def test_the_timing_of_a_job_is_made_of_its_definition_and_its_policy() -> None:
    own = {"anchor": "start", "first_run": "immediate", "jitter": 0.1, "stagger": True}
    late = job(policy=own, zone="Europe/Berlin", not_after=NOON)
    expected = Timing(HOURLY, "Europe/Berlin", Anchor.START, FirstRun.IMMEDIATE, jitter=0.1)
    expected = replace(expected, spread=JobId("j"), stagger=True, not_after=NOON)
    assert late.timing(JobPolicy()) == expected
    assert timing(late.spec, late.policy(JobPolicy()), JobId("j")) == expected
    assert timing(late.spec, late.policy(JobPolicy())).spread is None

"""How people read ids of sessions and people (SPEC OPS-9)."""

from __future__ import annotations

import pytest

from goclaw_py.core.display_names import (
    KnownNames,
    address,
    display_name,
    name_in_sentence,
    needed_names,
    sender_words,
)
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import Target

ANN = Target("telegram", "default", "7")
CREW = Target("telegram", "work", "-9")
PLANS = Target("telegram", "work", "-9", "5")
JOB = JobId("0190a2b4-1111-2222-3333-444455556666")
KNOWN = KnownNames({ANN: "Ann", CREW: "Crew", PLANS: "Plans"}, {JOB: "Water the plants"})


@pytest.mark.parametrize(
    ("key", "name", "bare"),
    [
        ("agent:main:telegram:direct:7", "Ann", "telegram 7"),
        ("agent:main:telegram.work:group:-9", "Crew", "telegram -9"),
        ("agent:main:telegram.work:group:-9:thread:5", "Crew / Plans", "telegram -9 / topic 5"),
        ("telegram/default/7", "Ann", "telegram 7"),
        (f"agent:main:cron:{JOB}", "job Water the plants", "job 0190a2b4-1111-2222"),
        (f"agent:main:cron:{JOB}:run", "job Water the plants", "job 0190a2b4-1111-2222"),
        ("agent:main:heartbeat:r1", "heartbeat of main", "heartbeat of main"),
        ("agent:main:subagent:0190a2b4-1111-2222-3333", "subagent 0190a2b4-1111-2222", None),
        ("agent:main:delegate:r1", "delegate r1", None),
        ("agent:main:api:mail:7", "API mail:7", None),
        ("agent:main:api:a/b/c", "API a/b/c", None),
        ("agent:main:console:direct:20260102-030405-00af", "New conversation", None),
        ("agent:main:console:direct:ann", "console ann", None),
        ("console/default/20260102-030405-00af", "New conversation", None),
        ("api", "api", None),
        ("agent:main", "agent:main", None),
        ("", "", None),
    ],
)
def test_a_key_has_a_name_with_or_without_stored_names(
    key: str, name: str, bare: str | None
) -> None:
    assert display_name(key, KNOWN) == name
    assert display_name(key, KnownNames()) == (name if bare is None else bare)


def test_what_is_needed_for_names_is_what_they_use() -> None:
    keys = [
        "agent:main:telegram.work:group:-9:thread:5", address(ANN), f"agent:main:cron:{JOB}:r1",
        "agent:main:heartbeat:r1", "api",
    ]  # fmt: skip
    assert needed_names(keys) == ({ANN, CREW, PLANS}, {JOB})


@pytest.mark.parametrize(
    ("sender", "words"),
    [
        ("console/default/browser", "console browser"),
        ("web/default/ann", "web ann"),
        ("telegram/default/7", "telegram/default/7"),
        ("api", "api"),
    ],
)
def test_the_title_of_a_conversation_is_not_the_name_of_a_sender(sender: str, words: str) -> None:
    assert sender_words(sender) == words


@pytest.mark.parametrize(("chat", "words"), [
    (ANN, "Ann"), (CREW, "Crew"), (Target("web", "default", "ben"), "web ben"),
    (Target("console", "default", "c1"), "conversation “error”"),
])  # fmt: skip
def test_the_title_of_a_conversation_is_named_as_one_in_a_sentence(
    chat: Target, words: str
) -> None:
    """Found by use: "5 messages of echo one, error and 1 other got no answer"."""
    known = KnownNames({**KNOWN.targets, Target("console", "default", "c1"): "error"}, {})
    assert name_in_sentence(chat, known) == words

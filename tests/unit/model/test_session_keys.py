"""Session keys, and who may talk."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.model.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.model.session_keys import (
    AccessDecision,
    AccessRules,
    DirectPolicy,
    GroupPolicy,
    access,
    chat_session,
    is_chat_name,
    peer_of,
)

HOME = Target("telegram", "default", "42")
MAIN = AgentName("main")
HELLO = InboundMessage(
    "42:1", HOME, PeerKind.DIRECT, Sender("7"), "hello", datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.mark.parametrize(
    ("target", "peer", "key"),
    [
        (HOME, PeerKind.DIRECT, "agent:main:telegram:direct:42"),
        (replace(HOME, chat="-9"), PeerKind.GROUP, "agent:main:telegram:group:-9"),
        (replace(HOME, thread="5"), PeerKind.GROUP, "agent:main:telegram:group:42:thread:5"),
        (replace(HOME, account="work"), PeerKind.DIRECT, "agent:main:telegram.work:direct:42"),
        (
            replace(HOME, account="work", thread="0"),
            PeerKind.GROUP,
            "agent:main:telegram.work:group:42:thread:0",
        ),
    ],
)
def test_a_chat_has_a_session_key(target: Target, peer: PeerKind, key: str) -> None:
    """SPEC IO-7."""
    assert chat_session(MAIN, target, peer) == key


def test_agents_have_sessions_of_their_own_in_one_chat() -> None:
    """SPEC IO-7."""
    other = AgentName("other")
    assert chat_session(other, HOME, PeerKind.DIRECT) == "agent:other:telegram:direct:42"


@pytest.mark.parametrize(
    ("policy", "listed", "known", "expected"),
    [
        (DirectPolicy.PAIRING, False, False, AccessDecision.PAIR),
        (DirectPolicy.PAIRING, False, True, AccessDecision.ALLOWED),
        (DirectPolicy.PAIRING, True, False, AccessDecision.ALLOWED),
        (DirectPolicy.ALLOWLIST, False, False, AccessDecision.IGNORED),
        (DirectPolicy.ALLOWLIST, False, True, AccessDecision.IGNORED),
        (DirectPolicy.ALLOWLIST, True, False, AccessDecision.ALLOWED),
        (DirectPolicy.OPEN, False, False, AccessDecision.ALLOWED),
        (DirectPolicy.DISABLED, False, True, AccessDecision.IGNORED),
        (DirectPolicy.DISABLED, True, True, AccessDecision.IGNORED),
    ],
)
def test_direct_chats_are_decided_by_policy_list_and_approval(
    policy: DirectPolicy, listed: bool, known: bool, expected: AccessDecision
) -> None:
    """SPEC CHAN-5."""
    rules = AccessRules(policy, frozenset({"7"} if listed else {"8"}))
    assert access(HELLO, rules, {"7"} if known else {"8"}) is expected


@pytest.mark.parametrize(
    ("policy", "listed", "expected"),
    [
        (DirectPolicy.OPEN, False, AccessDecision.IGNORED),
        (DirectPolicy.OPEN, True, AccessDecision.ALLOWED),
        (DirectPolicy.PAIRING, False, AccessDecision.IGNORED),
        (DirectPolicy.ALLOWLIST, True, AccessDecision.ALLOWED),
        (DirectPolicy.DISABLED, False, AccessDecision.IGNORED),
    ],
)
def test_a_denied_direct_chat_is_ignored_unless_the_settings_list_its_sender(
    policy: DirectPolicy, listed: bool, expected: AccessDecision
) -> None:
    """SPEC CHAN-5."""
    rules = AccessRules(policy, frozenset({"7"} if listed else {}))
    assert access(HELLO, rules, {"7"}, decided=False) is expected
    allowed = AccessDecision.PAIR if policy is DirectPolicy.PAIRING else access(HELLO, rules, ())
    assert access(HELLO, rules, (), decided=True) is allowed, "undoing it grants nothing else"


def test_pairing_is_the_default() -> None:
    """SPEC CHAN-5."""
    assert access(HELLO, AccessRules(), ()) is AccessDecision.PAIR


@pytest.mark.parametrize("policy", DirectPolicy)
def test_an_unknown_group_is_silence_whoever_writes(policy: DirectPolicy) -> None:
    """SPEC CHAN-5."""
    message = replace(HELLO, peer=PeerKind.GROUP)
    assert (
        access(message, AccessRules(policy, frozenset({"7"})), {"7"})
        is AccessDecision.UNKNOWN_GROUP
    )


@pytest.mark.parametrize(
    ("policy", "listed", "decided", "expected"),
    [
        (GroupPolicy.ALLOWLIST, None, None, AccessDecision.UNKNOWN_GROUP),
        (GroupPolicy.ALLOWLIST, None, True, AccessDecision.ALLOWED),
        (GroupPolicy.ALLOWLIST, None, False, AccessDecision.IGNORED),
        (GroupPolicy.ALLOWLIST, True, None, AccessDecision.ALLOWED),
        (GroupPolicy.ALLOWLIST, True, False, AccessDecision.ALLOWED),
        (GroupPolicy.ALLOWLIST, False, True, AccessDecision.IGNORED),
        (GroupPolicy.OPEN, None, None, AccessDecision.ALLOWED),
        (GroupPolicy.OPEN, None, False, AccessDecision.IGNORED),
        (GroupPolicy.OPEN, False, True, AccessDecision.IGNORED),
        (GroupPolicy.DISABLED, True, True, AccessDecision.IGNORED),
    ],
)
def test_a_group_is_decided_by_policy_settings_and_operator(
    policy: GroupPolicy, listed: bool | None, decided: bool | None, expected: AccessDecision
) -> None:
    """SPEC CHAN-5: what the settings say goes before what the operator said."""
    message = replace(HELLO, peer=PeerKind.GROUP)
    rules = AccessRules(group=policy, listed=listed)
    assert access(message, rules, (), decided=decided) is expected


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("mention", [True, False])
def test_in_a_group_only_what_is_addressed_is_taken_unless_mention_is_off(
    peer: PeerKind, mention: bool
) -> None:
    """SPEC CHAN-5."""
    message = replace(HELLO, peer=peer, addressed=False)
    rules = AccessRules(DirectPolicy.OPEN, group=GroupPolicy.OPEN, mention=mention)
    unmentioned = mention and peer is PeerKind.GROUP
    expected = AccessDecision.UNMENTIONED if unmentioned else AccessDecision.ALLOWED
    assert access(message, rules, ()) is expected


def test_a_group_that_is_unknown_is_noted_though_nobody_addressed_the_agent() -> None:
    """SPEC CHAN-5: the operator sees the groups that there are."""
    message = replace(HELLO, peer=PeerKind.GROUP, addressed=False)
    assert access(message, AccessRules(), ()) is AccessDecision.UNKNOWN_GROUP


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("agent", ["main", "group", "direct"])
@pytest.mark.parametrize("chat", ["-100", "group", "direct"])
@pytest.mark.parametrize("thread", [None, "7"])
def test_the_peer_can_be_read_from_a_session_key(
    agent: str, peer: PeerKind, chat: str, thread: str | None
) -> None:
    """SPEC IO-7."""
    key = chat_session(AgentName(agent), Target("telegram", "work", chat, thread), peer)
    assert peer_of(key) is peer


@pytest.mark.parametrize(
    "key", ["agent:main:cron:daily", "agent:main:cron:group:7", "agent:main:api:group", "", "agent"]
)
def test_a_session_that_is_no_chat_counts_as_direct(key: str) -> None:
    """SPEC QUEUE-1."""
    assert peer_of(SessionKey(key)) is PeerKind.DIRECT


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("policy", DirectPolicy)
def test_whoever_reaches_a_trusted_channel_may_talk(policy: DirectPolicy, peer: PeerKind) -> None:
    """SPEC CHAN-9."""
    rules = AccessRules(policy, trusted=True)
    assert access(replace(HELLO, peer=peer), rules, ()) is AccessDecision.ALLOWED


def test_only_the_id_identifies_a_sender() -> None:
    """SPEC CHAN-5: names and user names can be changed by anybody."""
    impostor = replace(HELLO, sender=Sender("666", name="7", username="7"))
    assert access(impostor, AccessRules(allow=frozenset({"7"})), {"7"}) is AccessDecision.PAIR


@pytest.mark.parametrize("name", ["a", "local", "A-1_b.c", "x" * 64])
def test_a_chat_may_be_called_by_letters_digits_and_some_marks(name: str) -> None:
    assert is_chat_name(name)


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "a b", "-a", ".", "x" * 65, "ä", "a\n"])
def test_a_chat_may_not_be_called_what_would_break_a_session_key(name: str) -> None:
    """SPEC IO-7."""
    assert not is_chat_name(name)

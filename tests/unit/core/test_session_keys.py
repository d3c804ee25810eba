"""Session keys, and who may talk (SPEC CHAN-5, IO-7)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.core.session_keys import (
    AccessDecision,
    AccessRules,
    DirectPolicy,
    GroupPolicy,
    access,
    chat_of,
    chat_session,
    is_chat_name,
    peer_of,
)
from goclaw_py.testing.clock import START

HOME = Target("telegram", "default", "42")
WORK = replace(HOME, account="work")
HELLO = InboundMessage("42:1", HOME, PeerKind.DIRECT, Sender("7"), "hello", START)
IN_GROUP = replace(HELLO, peer=PeerKind.GROUP)
PAIR, ALLOWED, IGNORED = AccessDecision.PAIR, AccessDecision.ALLOWED, AccessDecision.IGNORED
UNKNOWN = AccessDecision.UNKNOWN_GROUP
SEVEN = frozenset({"7"})


@pytest.mark.parametrize(
    ("target", "peer", "key"),
    [
        (HOME, PeerKind.DIRECT, "telegram:direct:42"),
        (replace(HOME, chat="-9"), PeerKind.GROUP, "telegram:group:-9"),
        (replace(HOME, thread="5"), PeerKind.GROUP, "telegram:group:42:thread:5"),
        (WORK, PeerKind.DIRECT, "telegram.work:direct:42"),
        (replace(WORK, thread="0"), PeerKind.GROUP, "telegram.work:group:42:thread:0"),
    ],
)
def test_a_chat_has_a_session_key_with_each_agent(target: Target, peer: PeerKind, key: str) -> None:
    for agent in ("main", "other"):
        session = chat_session(AgentName(agent), target, peer)
        assert session == f"agent:{agent}:{key}"
        assert chat_of(session) == target


@pytest.mark.parametrize(
    "key",
    ["", "main", "agent:main:cron:1", "agent:main:api:direct:1", "agent:main:heartbeat:r",
     "agent:main:telegram:7", "telegram:direct:7"],
)  # fmt: skip
def test_other_keys_have_no_chat(key: str) -> None:
    assert chat_of(SessionKey(key)) is None


@pytest.mark.parametrize(
    ("policy", "listed", "known", "expected"),
    [
        (DirectPolicy.PAIRING, False, False, PAIR),
        (DirectPolicy.PAIRING, False, True, ALLOWED),
        (DirectPolicy.PAIRING, True, False, ALLOWED),
        (DirectPolicy.ALLOWLIST, False, False, IGNORED),
        (DirectPolicy.ALLOWLIST, False, True, IGNORED),
        (DirectPolicy.ALLOWLIST, True, False, ALLOWED),
        (DirectPolicy.OPEN, False, False, ALLOWED),
        (DirectPolicy.DISABLED, False, True, IGNORED),
        (DirectPolicy.DISABLED, True, True, IGNORED),
    ],
)
def test_direct_chats_are_decided_by_policy_list_and_approval(
    policy: DirectPolicy, listed: bool, known: bool, expected: AccessDecision
) -> None:
    rules = AccessRules(policy, frozenset({"7"} if listed else {"8"}))
    assert access(HELLO, rules, {"7"} if known else {"8"}) is expected


@pytest.mark.parametrize(
    ("policy", "listed", "expected"),
    [
        (DirectPolicy.OPEN, False, IGNORED),
        (DirectPolicy.OPEN, True, ALLOWED),
        (DirectPolicy.PAIRING, False, IGNORED),
        (DirectPolicy.ALLOWLIST, True, ALLOWED),
        (DirectPolicy.DISABLED, False, IGNORED),
    ],
)
def test_a_denied_direct_chat_is_ignored_unless_the_settings_list_its_sender(
    policy: DirectPolicy, listed: bool, expected: AccessDecision
) -> None:
    rules = AccessRules(policy, frozenset({"7"} if listed else {}))
    assert access(HELLO, rules, {"7"}, decided=False) is expected
    allowed = PAIR if policy is DirectPolicy.PAIRING else access(HELLO, rules, ())
    assert access(HELLO, rules, (), decided=True) is allowed, "undoing it grants nothing else"


@pytest.mark.parametrize(("known", "expected"), [({"7"}, ALLOWED), ({"8"}, IGNORED)])
def test_where_people_are_invited_nobody_else_gets_a_code(
    known: set[str], expected: AccessDecision
) -> None:
    """CHAN-13."""
    assert access(HELLO, AccessRules(invited=True), known) is expected


def test_pairing_is_the_default_and_only_the_id_identifies_a_sender() -> None:
    """Names and user names can be changed by anybody."""
    assert access(HELLO, AccessRules(), ()) is PAIR
    impostor = replace(HELLO, sender=Sender("666", name="7", username="7"))
    assert access(impostor, AccessRules(allow=SEVEN), {"7"}) is PAIR


@pytest.mark.parametrize("policy", DirectPolicy)
def test_an_unknown_group_is_silence_whoever_writes_but_noted(policy: DirectPolicy) -> None:
    """Though nobody addressed the agent: the operator sees the groups that there are."""
    for addressed in (True, False):
        message = replace(IN_GROUP, addressed=addressed)
        assert access(message, AccessRules(policy, SEVEN), {"7"}) is UNKNOWN


@pytest.mark.parametrize(
    ("policy", "listed", "decided", "expected"),
    [
        (GroupPolicy.ALLOWLIST, None, None, UNKNOWN),
        (GroupPolicy.ALLOWLIST, None, True, ALLOWED),
        (GroupPolicy.ALLOWLIST, None, False, IGNORED),
        (GroupPolicy.ALLOWLIST, True, None, ALLOWED),
        (GroupPolicy.ALLOWLIST, True, False, ALLOWED),
        (GroupPolicy.ALLOWLIST, False, True, IGNORED),
        (GroupPolicy.OPEN, None, None, ALLOWED),
        (GroupPolicy.OPEN, None, False, IGNORED),
        (GroupPolicy.OPEN, False, True, IGNORED),
        (GroupPolicy.DISABLED, True, True, IGNORED),
    ],
)
def test_a_group_is_decided_by_policy_settings_and_operator(
    policy: GroupPolicy, listed: bool | None, decided: bool | None, expected: AccessDecision
) -> None:
    """What the settings say goes before what the operator said."""
    rules = AccessRules(group=policy, listed=listed)
    assert access(IN_GROUP, rules, (), decided=decided) is expected


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("mention", [True, False])
def test_in_a_group_only_what_is_addressed_is_taken(peer: PeerKind, mention: bool) -> None:
    message = replace(HELLO, peer=peer, addressed=False)
    rules = AccessRules(DirectPolicy.OPEN, group=GroupPolicy.OPEN, mention=mention)
    unmentioned = mention and peer is PeerKind.GROUP
    assert access(message, rules, ()) is (AccessDecision.UNMENTIONED if unmentioned else ALLOWED)


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("thread", [None, "7"])
def test_the_peer_can_be_read_from_a_session_key(peer: PeerKind, thread: str | None) -> None:
    """SPEC IO-7, QUEUE-1: a session that is no chat counts as direct."""
    for agent, chat in product(["main", "group", "direct"], ["-100", "group", "direct"]):
        key = chat_session(AgentName(agent), Target("telegram", "work", chat, thread), peer)
        assert peer_of(key) is peer
    no_chats = "agent:main:cron:daily", "agent:main:cron:group:7", "agent:main:api:group"
    for other in (*no_chats, "", "agent"):
        assert peer_of(SessionKey(other)) is PeerKind.DIRECT


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("policy", DirectPolicy)
def test_whoever_reaches_a_trusted_channel_may_talk(policy: DirectPolicy, peer: PeerKind) -> None:
    """SPEC CHAN-9."""
    rules = AccessRules(policy, trusted=True)
    assert access(replace(HELLO, peer=peer), rules, ()) is ALLOWED


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "a b", "-a", ".", "x" * 65, "ä", "a\n"])
def test_a_chat_may_not_be_called_what_would_break_a_session_key(name: str) -> None:
    assert not is_chat_name(name)

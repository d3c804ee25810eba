"""Session keys, and who may talk."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.core.routing import (
    Access,
    AccessRules,
    DirectPolicy,
    access,
    chat_session,
    is_chat_name,
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
        (DirectPolicy.PAIRING, False, False, Access.PAIR),
        (DirectPolicy.PAIRING, False, True, Access.ALLOWED),
        (DirectPolicy.PAIRING, True, False, Access.ALLOWED),
        (DirectPolicy.ALLOWLIST, False, False, Access.IGNORED),
        (DirectPolicy.ALLOWLIST, False, True, Access.IGNORED),
        (DirectPolicy.ALLOWLIST, True, False, Access.ALLOWED),
        (DirectPolicy.OPEN, False, False, Access.ALLOWED),
        (DirectPolicy.DISABLED, False, True, Access.IGNORED),
        (DirectPolicy.DISABLED, True, True, Access.IGNORED),
    ],
)
def test_direct_chats_are_decided_by_policy_list_and_approval(
    policy: DirectPolicy, listed: bool, known: bool, expected: Access
) -> None:
    """SPEC CHAN-5."""
    rules = AccessRules(policy, frozenset({"7"} if listed else {"8"}))
    assert access(HELLO, rules, {"7"} if known else {"8"}) is expected


def test_pairing_is_the_default() -> None:
    """SPEC CHAN-5."""
    assert access(HELLO, AccessRules(), ()) is Access.PAIR


@pytest.mark.parametrize("policy", DirectPolicy)
def test_an_unknown_group_is_silence_whoever_writes(policy: DirectPolicy) -> None:
    """SPEC CHAN-5."""
    message = replace(HELLO, peer=PeerKind.GROUP)
    assert access(message, AccessRules(policy, frozenset({"7"})), {"7"}) is Access.IGNORED


@pytest.mark.parametrize("peer", PeerKind)
@pytest.mark.parametrize("policy", DirectPolicy)
def test_whoever_reaches_a_trusted_channel_may_talk(policy: DirectPolicy, peer: PeerKind) -> None:
    """SPEC CHAN-9."""
    rules = AccessRules(policy, trusted=True)
    assert access(replace(HELLO, peer=peer), rules, ()) is Access.ALLOWED


def test_only_the_id_identifies_a_sender() -> None:
    """SPEC CHAN-5: names and user names can be changed by anybody."""
    impostor = replace(HELLO, sender=Sender("666", name="7", username="7"))
    assert access(impostor, AccessRules(allow=frozenset({"7"})), {"7"}) is Access.PAIR


@pytest.mark.parametrize("name", ["a", "local", "A-1_b.c", "x" * 64])
def test_a_chat_may_be_called_by_letters_digits_and_some_marks(name: str) -> None:
    assert is_chat_name(name)


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "a b", "-a", ".", "x" * 65, "ä", "a\n"])
def test_a_chat_may_not_be_called_what_would_break_a_session_key(name: str) -> None:
    """SPEC IO-7."""
    assert not is_chat_name(name)

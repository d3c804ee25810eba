"""What the settings say about accounts, chats and threads (SPEC CHAN-5, AGENT-3, CMD-6)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.app.parts import chat_rules
from goclaw_py.config import load
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import DirectPolicy, GroupPolicy
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.session_settings import ChatRules, SessionSettings
from goclaw_py.scheduler.models import Mode
from goclaw_py.testing.channel import RecordingChannel

AGENTS = "[agents.helper]\n[agents.other]\n[agents.helper.queue]\ncapacity = 3\n"


def rules_of(folder: Path, text: str, *, trusted: bool = False, **env: str) -> SessionSettings:
    """The rules that follow from a file with one account of telegram."""
    (folder / "goclaw.toml").write_text(AGENTS + text, "utf-8")
    settings = load(env={"GOCLAW_HOME": str(folder), **env})
    channel = RecordingChannel(trusted=trusted)
    return SessionSettings(
        chat_rules(settings, {(channel.name, channel.account): channel.trusted}), ContextUsage({})
    )


def at(policies: SessionSettings, chat: str = "1", thread: str | None = None) -> ChatRules:
    return policies.rules(Target("telegram", "default", chat, thread))


def test_without_settings_direct_chats_pair_and_groups_are_unknown(tmp_path: Path) -> None:
    rules = at(rules_of(tmp_path, ""))
    access = rules.access
    assert (access.direct, access.group) == (DirectPolicy.PAIRING, GroupPolicy.ALLOWLIST)
    assert (access.listed, access.mention, access.trusted) == (None, True, False)
    assert rules.agent == "main"


def test_an_account_says_what_holds_in_all_its_chats(tmp_path: Path) -> None:
    text = '[channels.telegram]\ndirect = "open"\ngroups = "open"\nmention = false\n'
    text += 'allow = [7]\nagent = "helper"\n'
    access = at(rules_of(tmp_path, text, trusted=True)).access
    assert (access.direct, access.group) == (DirectPolicy.OPEN, GroupPolicy.OPEN)
    assert (access.mention, access.trusted) == (False, True)
    assert access.allow == {"7"}
    assert at(rules_of(tmp_path, text)).agent == "helper"
    start = "GOCLAW_CHANNELS__TELEGRAM"
    env: dict[str, Any] = {f"{start}__GROUPS": "open", f"{start}__MENTION": "false"}
    access = at(rules_of(tmp_path, "", **env)).access
    assert (access.group, access.mention) == (GroupPolicy.OPEN, False)


def test_a_listed_group_is_allowed_with_its_threads_unless_it_is_off(tmp_path: Path) -> None:
    chats = "[channels.telegram.chats.{}]\n"
    text = chats.format('"-100"') + chats.format('"-200"') + "enabled = false\n"
    policies = rules_of(tmp_path, text)
    listed = [at(policies, chat).access.listed for chat in ("-100", "-200", "-300")]
    assert listed == [True, False, None]
    policies = rules_of(tmp_path, TREE)
    places = [("-100", "7"), ("-100", "8"), ("-300", "7")]
    assert [at(policies, *place).access.listed for place in places] == [True, True, None]


TREE = """
[queue]
mode = "followup"
[channels.telegram]
agent = "helper"
[channels.telegram.queue]
max_concurrent = 2
[channels.telegram.chats."-100"]
mention = false
[channels.telegram.chats."-100".queue]
mode = "collect"
[channels.telegram.chats."-100".threads."7"]
agent = "other"
mention = true
[channels.telegram.chats."-100".threads."7".queue]
mode = "steer"
debounce_ms = 0
[channels.telegram.chats."-100".threads."8"]
[channels.telegram.chats."-200"]
agent = "other"
"""


@pytest.mark.parametrize(("place", "expected"), [
    (("-300", None), ("helper", True, Mode.FOLLOWUP, 3, 0.8)),
    (("-300", "7"), ("helper", True, Mode.FOLLOWUP, 3, 0.8)),
    (("-100", None), ("helper", False, Mode.COLLECT, 3, 0.8)),
    (("-100", "9"), ("helper", False, Mode.COLLECT, 3, 0.8)),
    (("-100", "7"), ("other", True, Mode.STEER, 10, 0.0)),
    (("-100", "8"), ("helper", False, Mode.COLLECT, 3, 0.8)),
    (("-200", None), ("other", True, Mode.FOLLOWUP, 10, 0.8)),
])  # fmt: skip
def test_the_narrowest_level_wins_key_by_key(
    tmp_path: Path, place: tuple[str, str | None], expected: tuple[str, bool, Mode, int, float]
) -> None:
    """SPEC section 2: global < agent < channel < chat; a thread is narrower than its chat."""
    rules = at(rules_of(tmp_path, TREE), *place)
    for peer in PeerKind:
        policy = rules.policy(peer)
        queue = policy.mode, policy.capacity, policy.debounce_s
        assert (rules.agent, rules.access.mention, *queue) == expected
        assert policy.concurrency == 2


def test_who_may_stop_what_is_set_for_an_account_a_chat_and_a_thread(tmp_path: Path) -> None:
    text = """
[channels.telegram.chats."-1"]
stop = "anyone"
[channels.telegram.chats."-1".threads."7"]
stop = "own"
"""
    policies = rules_of(tmp_path, text)
    places = [("-2", None), ("-1", None), ("-1", "8"), ("-1", "7")]
    assert [at(policies, *place).stop for place in places] == ["own", "anyone", "anyone", "own"]
    policies = rules_of(tmp_path, text, GOCLAW_CHANNELS__TELEGRAM__STOP="anyone")
    assert at(policies, "-2", None).stop == "anyone"


@pytest.mark.parametrize(("text", "path"), [
    ('agent = "x"', "channels.telegram.agent"),
    ('agent = "x"\n[channels.telegram.chats."-1"]', "channels.telegram.agent"),
    ('[channels.telegram.chats."-1"]\nagent = "x"', "channels.telegram.chats.-1.agent"),
    ('[channels.telegram.chats."-1"]\nagent = "x"\nthreads = { "7" = {} }',
     "channels.telegram.chats.-1.agent"),
    ('[channels.telegram.chats."-1".threads."7"]\nagent = "x"',
     "channels.telegram.chats.-1.threads.7.agent"),
])  # fmt: skip
def test_an_unknown_agent_is_named_with_its_path(tmp_path: Path, text: str, path: str) -> None:
    with pytest.raises(SettingError) as caught:
        rules_of(tmp_path, f"[channels.telegram]\n{text}\n")
    told = str(caught.value)
    assert re.match(rf".*goclaw\.toml:\d+: {re.escape(path)} = 'x': ", told)
    assert all(name in told for name in ("main", "helper", "other"))


@pytest.mark.parametrize(("text", "words"), [
    ('groups = "some"', "channels.telegram.groups = 'some'"),
    ("mention = 2", "channels.telegram.mention = 2"),
    ('stop = "admins"', "channels.telegram.stop = 'admins'"),
    ('[channels.telegram.chats."-1"]\nmention = "x"', "chats.-1.mention = 'x'"),
    ('[channels.telegram.chats."-1"]\nmentoin = true', "did you mean mention?"),
    ('[channels.telegram.chats."-1"]\nenabled = 3', "chats.-1.enabled = 3"),
    ('[channels.telegram.chats."-1".queue]\nmode = "x"', "chats.-1.queue.mode = 'x'"),
    ('[channels.telegram.chats."-1".threads."7"]\nenabled = true', "threads.7.enabled"),
    ('[channels.telegram.chats."a b"]', "the id of a chat"),
])  # fmt: skip
def test_a_wrong_value_is_told_with_its_path(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        rules_of(tmp_path, f"[channels.telegram]\n{text}\n")
    assert words in str(caught.value)
    assert str(tmp_path / "goclaw.toml") in str(caught.value)


def test_an_agent_that_a_message_chooses_has_its_own_queue(tmp_path: Path) -> None:
    """SPEC CHAN-9: only where all people are operators."""
    helper = AgentName("helper")
    for trusted, capacity in ((True, 3), (False, 10)):
        rules = at(rules_of(tmp_path, "", trusted=trusted))
        assert rules.policy(PeerKind.DIRECT).capacity == 10
        assert rules.policy(PeerKind.DIRECT, helper).capacity == capacity
        assert rules.policy(PeerKind.DIRECT, AgentName("gone")).capacity == 10

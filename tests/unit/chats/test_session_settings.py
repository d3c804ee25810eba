"""Where the operator decides about groups, one by one (SPEC CHAN-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from goclaw_py.chats.context_usage import ContextUsage
from goclaw_py.chats.session_settings import ChatRules, OperatorDecidedAccounts, SessionSettings
from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import Target
from goclaw_py.model.session_keys import AccessRules, GroupPolicy
from goclaw_py.scheduler.models import QueuePolicy

ASKS = AccessRules(group=GroupPolicy.ALLOWLIST)


def rules(access: AccessRules, **narrower: AccessRules) -> ChatRules:
    within = {chat: rules(own) for chat, own in narrower.items()}
    policy = QueuePolicy()
    return ChatRules(AgentName("main"), access, policy, policy, narrower=within)


def asking(accounts: Mapping[str, ChatRules]) -> OperatorDecidedAccounts:
    made = SessionSettings(
        {("telegram", name): own for name, own in accounts.items()}, ContextUsage({})
    )
    return made.asking()


def test_groups_of_accounts_that_take_all_or_none_wait_for_nobody() -> None:
    found = asking(
        {
            "asks": rules(ASKS),
            "all": rules(AccessRules(group=GroupPolicy.OPEN)),
            "none": rules(AccessRules(group=GroupPolicy.DISABLED)),
            "mine": rules(replace(ASKS, trusted=True)),
        }
    )
    assert (list(found.places), list(found.settled)) == ([("telegram", "asks")], [])


def test_chats_about_which_the_settings_say_something_are_settled() -> None:
    listed, denied = replace(ASKS, listed=True), replace(ASKS, listed=False)
    found = asking({"asks": rules(ASKS, yes=listed, no=denied, other=ASKS)})
    assert list(found.settled) == [
        Target("telegram", "asks", "yes"),
        Target("telegram", "asks", "no"),
    ]

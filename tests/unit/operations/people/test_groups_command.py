"""``goclaw people groups``: in which groups the agent listens (SPEC CHAN-5, OPS-1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.cli.conftest import Shell, ThreadGateway, lines
from tests.unit.web import fake_names, fakes
from tests.unit.web.fakes import FakeControl

FULL_WIDTH = "\uff33\uff54\uff52"
"""The beginning of the name, as some keyboards write it."""


def decided(control: FakeControl) -> list[tuple[object, ...]]:
    return [call[1:] for call in control.calls if call[0] == "allow_chat"]


def test_groups_to_decide_come_first(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("people", "groups", "list")
    assert got.code == 0
    assert not {"\x1b", "\u202e"} & set(got.out)  # SPEC SEC-1
    head, *rows = lines(got.out)
    assert head == "NAME ID CHANNEL STATE LAST SEEN UNMENTIONED PROBLEM"
    assert rows[0].startswith("Family -1003 Ann[2J -1002 telegram/default pending ")
    assert rows[1].startswith("Straße -3001 telegram/work pending ")
    assert rows[2].startswith("Family -1001 telegram/default allowed ")
    assert rows[3].startswith("-2001 telegram/default denied ")
    assert rows[3].endswith(" cannot write to it: the bot was thrown out")
    assert len(rows) == 4  # a direct chat is no group
    found = goclaw.data("people", "groups", "list")
    assert [one["chat"] for one in found] == ["-1002", "-3001", "-1001", "-2001"]
    assert [one["allowed"] for one in found] == [None, None, True, False]


def test_what_few_groups_need_is_shown(goclaw: Shell, database: FakeControl) -> None:
    # SPEC OPS-4: when one was heard last without a mention; the account only among several.
    database.crowd.known_chats = [replace(fake_names.FAMILY, unmentioned_at=fakes.NOW)]
    out = goclaw("people", "groups", "list").out
    assert out.splitlines()[1].count("2026-01-02 03:04:05") == 2
    assert "CHANNEL" not in out
    assert "telegram" not in out
    database.crowd.known_chats = [fake_names.DIRECT]
    assert goclaw("people", "groups", "list").out.startswith("no groups yet")


@pytest.mark.parametrize(
    "wanted", ["-3001", "-30", "Straße", "strasse", "STR", FULL_WIDTH, "\u202estr"]
)
def test_a_group_is_meant(goclaw: Shell, gateway: ThreadGateway, wanted: str) -> None:
    got = goclaw("people", "groups", "allow", wanted)
    assert (got.code, got.out) == (0, "Straße (-3001) on telegram/work is allowed\n")
    assert decided(gateway.control) == [("telegram", "work", "-3001", True)]


def test_a_group_is_denied(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("people", "groups", "deny", "-1001")
    assert got.out == "Family (-1001) on telegram/default is denied\n"
    assert decided(database) == [("telegram", "default", "-1001", False)]
    assert goclaw("people", "groups", "allow", "-1001").out.endswith("is already allowed\n")
    assert (
        goclaw("people", "groups", "deny", "-2001").out
        == "-2001 on telegram/default is already denied\n"
    )


def test_a_name_never_decides_between_two_groups(goclaw: Shell, database: FakeControl) -> None:
    """A stranger may call a group as they like, and begin it with another one's name or id."""
    got = goclaw("people", "groups", "allow", "Family")
    assert (got.code, decided(database)) == (1, [])
    assert "several groups match 'Family', give an id: Family (-1001), Family -1003" in got.err
    assert got.err.count("\n") == 1
    assert not {"\x1b", "\u202e"} & set(got.err)


def test_an_id_goes_before_a_name_that_looks_like_it(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("people", "groups", "allow", "-")
    assert (got.code, decided(database)) == (1, [])
    assert got.err.endswith(", …\n")  # ids with the same beginning
    database.crowd.known_chats = [fake_names.WORK]
    assert goclaw("people", "groups", "allow", "\u202e\u202c").code == 1  # nobody can see it
    assert decided(database) == []
    database.crowd.known_chats = [replace(fake_names.IMPOSTOR, name="-1001"), fake_names.FAMILY]
    assert goclaw("people", "groups", "deny", "-1001").code == 0
    assert decided(database) == [("telegram", "default", "-1001", False)]


def test_a_group_on_two_accounts_needs_the_account(goclaw: Shell, database: FakeControl) -> None:
    database.crowd.known_chats = [fake_names.FAMILY, replace(fake_names.FAMILY, account="work")]
    got = goclaw("people", "groups", "deny", "-1001")
    assert got.code == 1
    assert "on telegram/default, telegram/work: add --channel or --account" in got.err
    assert goclaw("people", "groups", "deny", "-1001", "--account", "work").code == 0
    assert decided(database) == [("telegram", "work", "-1001", False)]


def test_an_unknown_group_is_named(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("people", "groups", "allow", "-99")
    assert (got.code, got.out) == (1, "")
    assert got.err.startswith("goclaw: no group '-99'; ")
    assert (
        goclaw("people", "groups", "allow", "Family of one").code == 1
    )  # a direct chat is no group
    assert decided(gateway.control) == []


SETTINGS = """
[channels.telegram]
token = "1:x"
groups = "allowlist"
chats."-1001".enabled = false
chats."-2001" = {}

[channels.telegram.accounts.work]
token = "2:x"
groups = "open"

[channels.telegram.accounts.shut]
token = "3:x"
groups = "disabled"
"""


@pytest.fixture
def settings(goclaw: Shell) -> None:
    (goclaw.home / "goclaw.toml").write_text(SETTINGS)


@pytest.mark.parametrize(("more", "account"), [([], "default"), (["--account", "work"], "work")])
def test_a_group_can_be_decided_before_the_bot_was_in_it(
    goclaw: Shell, settings: None, gateway: ThreadGateway, more: list[str], account: str
) -> None:
    got = goclaw("people", "groups", "allow", "-99", *more, "--channel", "telegram")
    said = f"-99 on telegram/{account} is allowed; the bot has received no message from it yet\n"
    assert (got.code, got.out) == (0, said)
    assert decided(gateway.control) == [("telegram", account, "-99", True)]


@pytest.mark.parametrize(("arguments", "words"), [
    (["-99", "--channel", "telegramm"], "telegram/default, telegram/work"),
    (["-99", "--channel", "telegram", "--account", "wrok"], "/wrok' is not configured"),
    (["-99\x1b[2J", "--channel", "telegram"], "'-99\\x1b[2J' is not a chat id"),
    (["\u202e99", "--channel", "telegram"], "is not a chat id"),
    (["\udcff", "--channel", "telegram"], "encoding"),
    (["-99", "--channel", "\udcff"], "encoding"),
])  # fmt: skip
def test_a_slip_of_the_finger_is_not_stored(
    goclaw: Shell, settings: None, database: FakeControl, arguments: list[str], words: str
) -> None:
    got = goclaw("people", "groups", "allow", *arguments)
    assert (got.code, got.out) == (2, "")
    assert words in " ".join(got.err.split())
    assert decided(database) == []


def test_the_settings_go_first(goclaw: Shell, settings: None, database: FakeControl) -> None:
    """SPEC OPS-4: why does it not listen there?"""
    database.crowd.known_chats.append(replace(fake_names.FAMILY, chat="-4", account="shut"))
    out = " ".join(goclaw("people", "groups", "list").out.split())
    for said in (
        "-1002 telegram/default pending",
        "-3001 telegram/work allowed (groups = open)",
        "-1001 telegram/default denied (listed in chats)",
        "-2001 telegram/default allowed (listed in chats)",
        "-4 telegram/shut denied (groups = disabled)",
    ):
        assert said in out
    # A decision against them is told to be in vain.
    got = goclaw("people", "groups", "allow", "-4")
    assert got.code == 0
    assert got.err == "warning: the settings override this: denied (groups = disabled)\n"
    assert "denied (listed in chats)" in goclaw("people", "groups", "allow", "-1001").err
    assert goclaw("people", "groups", "deny", "-3001").err == ""


def test_a_decision_can_be_in_vain_for_other_reasons(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("people", "groups", "allow", "-2001")
    assert (got.code, got.err) == (0, "warning: cannot write to it: the bot was thrown out\n")
    got = goclaw("people", "groups", "allow", "-99", "--channel", "telegram")  # there is no account
    assert (got.code, "known: none" in got.err) == (2, True)

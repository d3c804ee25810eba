"""``goclaw people``: who may talk to the agent (SPEC CHAN-5, SEC-1)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.cli.output import clock
from goclaw_py.core.messages import Sender
from goclaw_py.core.session_keys import AccessRules, DirectPolicy
from goclaw_py.records import Person, Standing
from tests.unit.cli.conftest import Confirmations, Shell, ThreadGateway
from tests.unit.web import fake_names, fake_people, fakes
from tests.unit.web.fakes import FakeControl

GUEST = Person("telegram", "work", Sender("7", fake_names.FOOL, "x\ny"), Standing.GUEST, fakes.NOW)


def known(control: FakeControl, *found: Person, asking: bool = True) -> None:
    control.crowd.approved = list(found)
    control.crowd.guests = []
    if not asking:
        control.crowd.asking = []


def test_who_may_talk_and_who_asked_is_listed(goclaw: Shell, gateway: ThreadGateway) -> None:
    known(gateway.control, fake_people.ANN)
    got = goclaw("people", "list")
    assert got.code == 0
    _, ann, bob = got.out.splitlines()
    assert ann.split() == ["42", "(Ann,", "@ann)", "telegram/default", "owner"]
    assert bob.startswith("43 (Bob)  ")
    assert "pending" in bob
    got = goclaw("people", "list", "--json")
    found = json.loads(got.out)
    people, (asking,) = found["people"], found["requests"]
    assert people[0]["standing"] == "owner"
    assert asking["sender"]["name"] == "Bob"
    assert "hash" not in got.out  # SPEC SEC-2: of a code
    found = goclaw.data("people", "activity")
    (person,), unapproved = found["people"], found["not_approved"]
    assert [one["chat"] for one in unapproved] == ["50"]  # the other direct chat is hers
    assert (person["sender"]["id"], person["standing"]) == ("42", "owner")


def test_people_are_owners_or_guests_and_spoke_last_somewhere(
    goclaw: Shell, database: FakeControl
) -> None:
    known(database, fake_people.ANN, GUEST)
    recent = datetime.now(UTC) - timedelta(hours=3, minutes=5)
    spoke = fake_names.SPOKE
    database.crowd.spoke = [replace(spoke, at=recent), spoke, replace(spoke, sender_id="7")]
    _, ann, guest, _ = goclaw("people", "activity").out.splitlines()
    assert "owner" in ann
    assert ann.endswith(f"{clock(recent)} in telegram 42")
    assert "guest" in guest
    assert "in telegram" not in guest  # the 7 who spoke is somebody else: on another account


@pytest.mark.parametrize("command", ["list", "people"])
def test_a_name_cannot_add_a_row_or_take_over_the_terminal(
    goclaw: Shell, database: FakeControl, command: str
) -> None:
    known(database, GUEST, asking=False)
    out = goclaw("people", command).out
    row = out.splitlines()[1]
    assert row.startswith("7 (Ann 2 telegram/default/1 9 (Owner)[2Jdn…, @x y)  telegram/work  ")
    assert not {"\x1b", "\u202e", "\u202d"} & set(out)
    # Where nobody is known, the way in is told.
    known(database, asking=False)
    database.crowd.known_chats = []
    assert "goclaw people approve CODE" in goclaw("people", command).out


def test_a_person_is_approved_as_owner_or_guest(goclaw: Shell, database: FakeControl) -> None:
    assert (
        goclaw("people", "approve", "CODE", "--yes").out == "42 (Ann, @ann) is owner on telegram\n"
    )
    assert "guest" in goclaw("people", "approve", "CODE", "--guest").out
    assert goclaw("people", "approve", "WRONG", "--yes").code == 1


def test_a_further_owner_is_asked_about_again_in_a_terminal(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAN-5: not about a guest, about the first person, or in a script."""
    asked = Confirmations(monkeypatch).asked
    assert goclaw("people", "approve", "CODE").code == 1
    assert "approve" not in [call[0] for call in database.calls]
    for option in ((), ("--guest",), ("--yes",)):
        assert goclaw("people", "approve", "CODE", *option).code == 0
    known(database, asking=False)
    assert goclaw("people", "approve", "CODE").code == 0
    assert len(asked) == 2
    assert "Make 43 (Bob) on telegram/default an owner?" in asked[0]
    known(database, fake_people.ANN)
    got = goclaw("people", "approve", "OTHER")
    assert (got.code, len(asked)) == (1, 2)
    assert "no valid pairing request has the code 'OTHER'" in got.err


@pytest.mark.parametrize("who", ["43", "Bob"])
@pytest.mark.parametrize("option", ["--yes", "--guest"])
def test_the_id_of_who_asks_is_no_code(
    goclaw: Shell, database: FakeControl, who: str, option: str
) -> None:
    got = goclaw("people", "approve", who, option)
    assert (got.code, "43 (Bob) has a code, which only they can see" in got.err) == (1, True)


@pytest.mark.parametrize("who", ["42", "@ann", "Ann"])
def test_a_person_is_forgotten(goclaw: Shell, database: FakeControl, who: str) -> None:
    assert "may no longer talk" in goclaw("people", "revoke", who, "--yes").out
    assert database.calls[-1] == ("revoke", "telegram", "default", "42")


def test_whom_to_forget_must_be_clear(goclaw: Shell, database: FakeControl) -> None:
    known(database, fake_people.ANN, replace(fake_people.ANN, account="work"))
    assert "give the id or @username" in goclaw("people", "revoke", "Anna").err
    assert "--account" in goclaw("people", "revoke", "Ann").err
    assert "--account" in goclaw("people", "revoke", "42").err
    assert goclaw("people", "revoke", "42", "--account", "work", "--yes").code == 0
    assert database.calls[-1] == ("revoke", "telegram", "work", "42")
    assert goclaw("people", "revoke", "42", "--channel", "web").code == 1
    other = replace(fake_people.ANN, sender=replace(fake_people.ANN.sender, id="43"))
    known(database, fake_people.ANN, other)
    assert "several people" in goclaw("people", "revoke", "Ann").err


def test_who_talks_without_an_approval_is_listed(goclaw: Shell, database: FakeControl) -> None:
    """SPEC CHAN-5: under open policies nobody is approved, and people talk all the same."""
    known(database, fake_people.ANN)
    eve = fake_names.EVE
    denied_one = replace(eve, chat="51", name="", allowed=False)
    database.crowd.known_chats = [eve, denied_one, replace(eve, chat="52", gone="blocked")]
    _, ann, row, denied = goclaw("people", "activity").out.splitlines()
    assert "owner" in ann
    assert row.startswith("50 (Eve (@eve))  telegram/default  not approved  2026-01-02")
    assert denied.startswith("51  ")
    assert "denied" in denied


def test_whom_the_settings_allow_is_listed_and_cannot_be_denied(
    goclaw: Shell, database: FakeControl
) -> None:
    """CHAN-5: also who has never written."""
    known(database, asking=False)
    database.crowd.known_chats = [fake_names.EVE]
    database.crowd.access = AccessRules(allow=frozenset({"44", "50"}))
    database.crowd.named = {"44": "Cleo (@cleo)"}
    for command in ("list", "activity"):
        _, cleo, eve = goclaw("people", command).out.splitlines()
        assert " ".join(cleo.split()).startswith(
            "44 (Cleo (@cleo)) telegram/default owner (settings)"
        )
        assert " ".join(eve.split()).startswith("50 telegram/default owner (settings)")
    told = "is an owner by the settings of telegram/default; remove {} under allow of"
    for command, who, number in (
        ("deny", "50", "50"),
        ("deny", "Cleo", "44"),
        ("revoke", "44", "44"),
        ("revoke", "Cleo", "44"),
        ("revoke", "@cleo", "44"),
    ):
        got = goclaw("people", command, who)
        assert (got.code, told.format(number) in got.err) == (1, True), got.err


def test_a_denied_person_stays_in_the_list(goclaw: Shell, database: FakeControl) -> None:
    known(database, fake_people.ANN, asking=False)
    database.crowd.known_chats = [replace(fake_names.EVE, allowed=False)]
    _, ann, eve = goclaw("people", "list").out.splitlines()
    assert "owner" in ann
    assert " ".join(eve.split()) == "50 (Eve (@eve)) telegram/default denied"


def test_a_revocation_is_confirmed_in_a_terminal(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(database, fake_people.ANN)
    asked = Confirmations(monkeypatch).asked
    assert goclaw("people", "revoke", "42").code == 1
    assert ("revoke", "telegram", "default", "42") not in database.calls
    assert goclaw("people", "revoke", "42").code == 0
    assert goclaw("people", "revoke", "42", "--yes").code == 0
    assert asked == ["Revoke the approval of 42 (Ann, @ann)?"] * 2


@pytest.mark.parametrize(
    ("direct", "access"),
    [
        (DirectPolicy.OPEN, ", and can write"),
        (DirectPolicy.PAIRING, ". They have no access yet: ask them to write again, for a new"),
        (DirectPolicy.ALLOWLIST, ". They have no access yet: add them to allow in goclaw.toml"),
        (DirectPolicy.DISABLED, "\n"),
    ],
)
def test_who_is_no_longer_denied_has_what_the_settings_say(
    goclaw: Shell, database: FakeControl, direct: DirectPolicy, access: str
) -> None:
    database.crowd.known_chats = [replace(fake_names.EVE, allowed=False)]
    database.crowd.access = AccessRules(direct)
    out = goclaw("people", "allow", "50").out
    assert out.startswith(f"50 (Eve (@eve)) on telegram/default is no longer denied{access}")


@pytest.mark.parametrize(("command", "allowed"), [("deny", False), ("allow", True)])
@pytest.mark.parametrize("who", ["50", "@eve"])
def test_who_talks_without_an_approval_can_be_denied(
    goclaw: Shell, database: FakeControl, who: str, command: str, allowed: bool
) -> None:
    database.crowd.known_chats = [fake_names.EVE]
    done = "no longer denied, and can write" if allowed else "denied"
    assert goclaw("people", command, who).out == f"50 (Eve (@eve)) on telegram/default is {done}\n"
    assert database.calls[-1] == ("allow_chat", "telegram", "default", "50", allowed)
    assert goclaw.data("people", command, who)["allowed"] is allowed


def test_whom_to_deny_must_be_clear(goclaw: Shell, database: FakeControl) -> None:
    work = replace(fake_names.EVE, account="work")
    database.crowd.known_chats = [fake_names.EVE, work, fake_names.DIRECT]
    assert "--account" in goclaw("people", "deny", "@eve").err
    assert goclaw("people", "deny", "50", "--account", "work").code == 0
    assert "goclaw people revoke 42" in goclaw("people", "deny", "42").err
    assert goclaw("people", "deny", "eve").code == 1


@pytest.mark.parametrize("who", ["43", "Bob"])
def test_who_asks_can_only_be_denied(goclaw: Shell, database: FakeControl, who: str) -> None:
    database.crowd.known_chats = []
    got = goclaw("people", "deny", who)
    assert got.code == (0 if who == "43" else 1)
    if who == "43":
        assert got.out == (
            "43 (Bob) on telegram/default is denied; their request and its code are deleted\n"
        )
        assert database.calls[-1][0] == "allow_chat"
    assert goclaw("people", "allow", who).code == 1


def test_who_is_approved_is_neither_allowed_nor_denied(
    goclaw: Shell, database: FakeControl
) -> None:
    known(database, fake_people.ANN)
    assert "42 (Ann, @ann) is approved, not denied" in goclaw("people", "allow", "42").err
    assert "is approved, see: goclaw people revoke 42" in goclaw("people", "deny", "@ann").err


@pytest.mark.parametrize("command", ["list", "activity"])
def test_long_lists_of_people_are_limited(
    goclaw: Shell, database: FakeControl, command: str
) -> None:
    known(database, *(replace(GUEST, sender=Sender(str(n), "Ann")) for n in range(60)))
    got = goclaw("people", command)
    assert len(got.out.splitlines()) < 60
    assert "showing at most 50 of each kind; use --limit to see more" in got.err
    assert len(goclaw.data("people", command, "--limit", "7")["people"]) == 7
    assert goclaw("people", command, "--limit", "100").err == ""

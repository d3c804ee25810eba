"""``goclaw approvals``: tool calls that need the approval of a person (SPEC AGENT-11)."""

from __future__ import annotations

import pytest

from goclaw_py.cli.exits import ExitCode
from goclaw_py.core.approvals import Approval, Decision
from tests.unit.cli.conftest import Confirmations, Shell, ThreadGateway, lines
from tests.unit.web.fake_approvals import ANSWERED, PAY, WIPE
from tests.unit.web.fake_names import KEY
from tests.unit.web.fakes import FakeControl

NAME = "telegram -1001 / topic 7"


@pytest.fixture(autouse=True)
def _database(database: FakeControl) -> None:
    """Without a gateway, unless a test starts one."""


def test_what_waits_is_listed_and_on_request_everything(goclaw: Shell) -> None:
    _, pay, wipe = lines(goclaw("approvals", "list").out)
    assert pay.startswith(f"{PAY.id} ")
    whom = "main Ann 2 telegram/default/1 9 (Owner)[2Jdnuof (guest)"
    assert pay.endswith(f' {whom} pay {{"to": "Bob[2J"}} {NAME} waiting {KEY}')
    assert wipe.endswith(f" main bills wipe {{}} {NAME} did it take effect? {KEY}")
    everything = goclaw("approvals", "list", "--all").out
    assert "\x1b" not in everything
    assert "✅ Always allowed by Ann 2 telegram" in everything.splitlines()[-1]
    assert [one["id"] for one in goclaw.data("approvals", "list")] == [PAY.id, WIPE.id]


def test_nothing_waits(goclaw: Shell, database: FakeControl) -> None:
    database.questions.asked, database.questions.granted = [], []
    assert goclaw("approvals", "list").out == "no tool call waits for an approval\n"
    assert goclaw("approvals", "list", "--all").out == "no approvals\n"
    assert goclaw("approvals", "grants").out == "no grants\n"


@pytest.mark.parametrize(("which", "says"), [
    (PAY, f"goclaw approvals allow {PAY.id}"),
    (PAY, f"goclaw approvals deny {PAY.id}"),
    (WIPE, f"goclaw approvals answer {WIPE.id} happened|again|skip"),
    (ANSWERED, "answered  2026-01-02"),
])  # fmt: skip
def test_one_is_shown_with_how_to_answer(goclaw: Shell, which: Approval, says: str) -> None:
    got = goclaw("approvals", "show", which.id[:6])
    assert got.code == 0
    assert says in got.out
    assert f"\narguments\n  {which.request.arguments}\n".replace("\x1b", "") in got.out


def test_who_asks_and_for_what_is_shown(goclaw: Shell) -> None:
    """AGENT-11; in lines of its own, whatever it contains."""
    shown = [
        " ".join(line.split()) for line in goclaw("approvals", "show", PAY.id).out.splitlines()
    ]
    assert "chat group “Family”" in shown
    assert "request <b>pay</b> Bob[2J" in shown
    assert "before allowed 2 times, denied 1 time" in shown
    assert any(line.startswith("from Ann 2 telegram") and "guest" in line for line in shown)


def test_a_rule_is_confirmed_in_a_terminal(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Confirmations(monkeypatch).asked
    for code in (1, 0):
        assert goclaw("approvals", "allow", PAY.id, "--always").code == code
    assert "Agent main may call pay without asking" in asked[0]
    assert database.questions.asked[0].decision is Decision.ALWAYS
    got = goclaw("approvals", "allow", PAY.id, "--always")
    assert (got.code, len(asked)) == (1, 2)  # it is answered, so nothing is asked
    assert "is answered already: ✅ Always allowed by the operator" in got.err


@pytest.mark.parametrize(("typed", "said"), [
    (("allow", "9f86"), "pay: ✅ Allowed once by the operator.\n"),
    (("allow", "9f86", "--session"), "pay: ✅ Allowed for this conversation by the operator.\n"),
    (("allow", "9f86", "--always", "--yes"), "pay: ✅ Always allowed by the operator.\n"),
    (("deny", "9f86"), "pay: 🚫 Denied by the operator.\n"),
    (("answer", "9f0", "happened"), "wipe: ✅ It happened, says the operator.\n"),
    (("answer", "9f0", "skip"), "wipe: ⏭ Skipped by the operator.\n"),
])  # fmt: skip
def test_a_question_is_answered(goclaw: Shell, typed: tuple[str, ...], said: str) -> None:
    got = goclaw("approvals", *typed)
    assert (got.code, got.out) == (0, said)
    again = goclaw("approvals", *typed)
    assert (again.code, again.out) == (ExitCode.FAILED, "")
    assert "answered already" in again.err


@pytest.mark.parametrize(("typed", "code", "said"), [
    (("allow", "9f"), ExitCode.FAILED, "approval '9f' is not unique"),
    (("allow", "9f0"), ExitCode.FAILED, "can be happened, again, skip, not once"),
    (("allow", "9f86", "--always"), ExitCode.USAGE, "agent main may call pay without asking"),
    (("allow", "9f8", "--session", "--always"), ExitCode.USAGE, "either --session or --always"),
    (("answer", "9f0", "once"), ExitCode.USAGE, "one of happened, again, skip"),
    (("revoke", "main", "shell"), ExitCode.FAILED, "has no grant for tool 'shell'"),
])  # fmt: skip
def test_a_mistake_is_told(goclaw: Shell, typed: tuple[str, ...], code: int, said: str) -> None:
    got = goclaw("approvals", *typed)
    assert (got.code, got.out) == (code, "")
    assert said in got.err


def test_grants_are_listed_and_revoked(goclaw: Shell, gateway: ThreadGateway) -> None:
    _, pay, wipe = lines(goclaw("approvals", "grants").out)
    assert pay.startswith("main pay all 2026-01-02")
    assert wipe.startswith(f"main wipe {NAME} 2026-01-02")
    assert wipe.endswith(f"the operator {KEY}")
    got = goclaw("approvals", "revoke", "main", "wipe", "--session", "thread:7")
    assert (got.code, got.out) == (0, "agent main asks again before it calls wipe\n")
    assert [one["tool"] for one in goclaw.data("approvals", "grants")] == ["pay"]
    assert goclaw.data("approvals", "revoke", "main", "pay") == {"revoked": True}

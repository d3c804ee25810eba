"""``goclaw people web``: browsers that are signed in, and tokens (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

import pytest

from goclaw_py.operations.settings.models import SettingsView
from goclaw_py.records.tokens import is_token
from tests.unit.cli.conftest import Done, Shell, ThreadGateway
from tests.unit.web.fake_access import BROWSER
from tests.unit.web.fakes import FakeControl


@pytest.mark.parametrize("where", ["gateway", "database"])
def test_browsers_are_listed_and_signed_out(
    goclaw: Shell, request: pytest.FixtureRequest, where: str
) -> None:
    """SEC-6."""
    request.getfixturevalue(where)
    assert f"{BROWSER.id}  " in goclaw("people", "web", "sign-ins", "--wide").out
    one = goclaw("people", "web", "sign-out", BROWSER.id)
    assert (one.code, one.out) == (0, "1 browser signed out\n")
    every = goclaw("people", "web", "sign-out", "--all")
    assert (every.code, every.out) == (0, "2 browsers signed out\n")
    assert goclaw("people", "web", "sign-out", "nobody").code == 1


@pytest.mark.parametrize("words", [[], ["6f2a", "--all"]])
def test_signing_out_needs_an_id_or_all(
    goclaw: Shell, database: FakeControl, words: list[str]
) -> None:
    got = goclaw("people", "web", "sign-out", *words)
    assert (got.code, "give the id of a sign-in, or --all" in got.err) == (2, True)
    assert database.calls == []


def test_a_token_is_printed_once_and_alone(goclaw: Shell, gateway: ThreadGateway) -> None:
    """SEC-8: a script can read it, and a person is told to keep it."""
    made = goclaw("people", "web", "tokens", "create", "ci", "--role", "operator", "--days", "90")
    assert made.code == 0
    # A gateway may have it from a variable that this shell does not have.
    assert "There is no web.token" not in made.err
    gateway.control.settings.seen = SettingsView(())
    made = goclaw("people", "web", "tokens", "create", "cd", "--role", "operator", "--days", "90")
    assert is_token(made.out.removesuffix("\n"))
    assert "not shown again" in made.err
    assert "There is no web.token" in made.err
    listed = goclaw("people", "web", "tokens").out
    assert "grafana" in listed
    assert "expired" in listed
    assert made.out.strip() not in listed
    assert goclaw("people", "web", "tokens", "revoke", "grafana").out == "grafana is revoked\n"


@pytest.mark.parametrize(("words", "said"), [
    (["create", ""], "a name of a token has 1 to 64 characters"),
    (["create", "x" * 65], "a name of a token has 1 to 64 characters"),
    (["create", " ci"], "no space at its ends"),
    (["create", "a\nb"], "no control characters"),
    (["create", "ci", "--role", "owner"], "viewer"),
    (["create", "ci", "--days", "0"], "must be at least 1"),
    (["create", "grafana"], "there is a token 'grafana'"),
    (["revoke", "nobody"], "there is no token 'nobody'"),
    (["--json", "create", "ci"], "put options after the subcommand"),
])  # fmt: skip
def test_what_no_token_can_be(
    goclaw: Shell, gateway: ThreadGateway, words: list[str], said: str
) -> None:
    got = goclaw("people", "web", "tokens", *words)
    assert got.code != 0
    assert said in got.err


TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("way", ["token", "token_file", "token_env"])
def test_the_token_of_the_settings_is_printed(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """As the sign-in page says."""
    file = goclaw.home / "web-token"
    file.write_text(f"{TOKEN}\n")
    values = {"token": TOKEN, "token_file": str(file), "token_env": "DASHBOARD_TOKEN"}
    monkeypatch.setenv("DASHBOARD_TOKEN", TOKEN)
    monkeypatch.setenv(f"GOCLAW_WEB__{way.upper()}", values[way])
    assert goclaw("people", "web", "tokens", "show") == Done(0, f"{TOKEN}\n", "")
    assert goclaw.data("people", "web", "tokens", "show") == {"token": TOKEN}


def test_a_token_that_is_not_set_is_said(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    got = goclaw("people", "web", "tokens", "show")
    assert (got.code, got.out) == (1, "")
    assert "no token is set" in got.err
    monkeypatch.setenv("GOCLAW_WEB__TOKEN_ENV", "DASHBOARD_TOKEN")
    got = goclaw("people", "web", "tokens", "show")
    assert (got.code, got.out) == (2, "")
    assert "DASHBOARD_TOKEN" in got.err
    assert "this variable is not set" in got.err

"""``goclaw people web``: personal links to the web chat (SPEC CHAN-13)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from goclaw_py.operations.settings.models import MASK, OriginKind, Setting, SettingsView
from tests.unit.cli.conftest import Shell, ThreadGateway, lines
from tests.unit.web.fakes import STATUS, FakeControl


def configure(goclaw: Shell, text: str) -> None:
    (goclaw.home / "goclaw.toml").write_text(f"[web]\n{text}\n", "utf-8")


def serve(gateway: ThreadGateway, address: str, **web: str) -> None:
    """Let the gateway have these settings, and serve its pages at an address."""
    origin = OriginKind.ENVIRONMENT, "environment variable"
    values = (Setting(f"web.{key}", value, *origin) for key, value in web.items())
    gateway.control.settings.seen = SettingsView(tuple(values))
    gateway.control.snapshot = replace(STATUS, address=address)


@pytest.mark.parametrize("where", ["gateway", "database"])
def test_a_link_is_printed_and_what_it_is_good_for(
    goclaw: Shell, request: pytest.FixtureRequest, where: str
) -> None:
    """OPS-1: with a gateway and without one."""
    if where == "gateway":
        serve(request.getfixturevalue(where), "http://127.0.0.1:8420")
    request.getfixturevalue(where)
    got = goclaw("people", "web", "invite", "ann")
    link, until, *notes = got.out.splitlines()
    assert got.code == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:8420/join/[\w-]{43}", link)
    assert until.startswith("One browser can use this link, until 2026-01-")
    assert "Only this machine can open it" in notes[0]
    assert "There is no web.token" in notes[1]


@pytest.mark.parametrize(
    ("settings", "base", "notes"),
    [
        ('public_url = "https://bot.example.org/"\ntoken = "0123456789abcdef"',
         "https://bot.example.org", 0),
        ('public_url = "https://bot.example.org"', "https://bot.example.org", 1),
        ('host = "192.0.2.7"\nport = 80\ntoken = "0123456789abcdef"', "http://192.0.2.7:80", 0),
        ('host = "::1"\ntoken = "0123456789abcdef"', "http://[::1]:8420", 1),
    ],
)  # fmt: skip
def test_the_address_is_that_of_the_settings(
    goclaw: Shell, database: FakeControl, settings: str, base: str, notes: int
) -> None:
    configure(goclaw, settings)
    link, _, *said = goclaw("people", "web", "invite", "ann").out.splitlines()
    assert re.fullmatch(rf"{re.escape(base)}/join/[\w-]{{43}}", link)
    assert len(said) == notes


@pytest.mark.parametrize(
    ("address", "web", "base", "notes"),
    [
        ("http://127.0.0.1:8555", {}, "http://127.0.0.1:8555", 2),
        ("http://[::1]:8555", {"token": MASK}, "http://[::1]:8555", 1),
        ("http://192.0.2.7:80", {"token": MASK}, "http://192.0.2.7:80", 0),
        ("http://0.0.0.0:1", {"public_url": "https://b.example.org/"}, "https://b.example.org", 1),
    ],
)
def test_the_address_is_that_of_the_gateway(
    goclaw: Shell, gateway: ThreadGateway, address: str, web: dict[str, str], base: str, notes: int
) -> None:
    """Also where it was started with variables that this shell does not have."""
    configure(goclaw, "port = 1")
    serve(gateway, address, **web)
    link, _, *said = goclaw("people", "web", "invite", "ann").out.splitlines()
    assert re.fullmatch(rf"{re.escape(base)}/join/[\w-]{{43}}", link)
    assert len(said) == notes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("port = 0", "before the gateway runs: goclaw run"),
        ("api = false", "set web.api = true"),
        ('public_url = "bot.example.org"', "a URL without a path such as https://bot.example.org"),
        ('public_url = "https://bot.example.org/chat"', "a URL without a path"),
    ],
)
def test_no_link_is_made_that_nobody_can_open(
    goclaw: Shell, database: FakeControl, settings: str, words: str
) -> None:
    configure(goclaw, settings)
    got = goclaw("people", "web", "invite", "ann")
    assert got.code != 0
    assert words in " ".join(got.err.split()).replace("│ ", "")
    assert "invite" not in {call[0] for call in database.calls}


@pytest.mark.parametrize("name", [
    "", " ", "-", "_ann", "ann.trip", "a b", "ann/..", "😀", "a:b", "x" * 33, "x" * 4096,
    "ann\n", "ann\x1b[2J", "..", "%61",
])  # fmt: skip
def test_a_name_that_cannot_be_is_refused(goclaw: Shell, database: FakeControl, name: str) -> None:
    for verb in ("invite", "revoke"):
        got = goclaw("web", verb, "--", name)
        assert got.code == 2
        assert "1 to 32 characters" in " ".join(got.err.split())
    assert database.calls == []


def test_a_name_is_invited_once_unless_another_link_is_wanted(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    """A person could otherwise get the conversations of another one with the same name."""
    got = goclaw("people", "web", "invite", "ben")
    assert (got.code, got.out) == (1, "")
    assert "ben is, or was, invited" in got.err
    assert goclaw("people", "web", "invite", "ben", "--again").code == 0
    assert goclaw("people", "web", "invite", "nobody", "--again").code == 1


def test_programs_get_the_whole_address(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw.data("people", "web", "invite", "ann")
    assert got["name"] == "ann"
    assert got["url"] == f"http://127.0.0.1:8420{got['path']}"


def test_invited_people_are_listed(goclaw: Shell, gateway: ThreadGateway) -> None:
    _, ben, lea = lines(goclaw("people", "web", "list").out)
    assert ben.startswith("ben expired 2026-01-")
    assert lea.startswith("lea none 0 2026-01-")
    assert [one["browsers"] for one in goclaw.data("people", "web", "list")] == [2, 0]


def test_a_person_is_removed(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("people", "web", "revoke", "42")
    assert (got.code, got.out) == (0, "42 may no longer use the web chat\n")
    assert ("revoke", "web", "default", "42") in gateway.control.calls
    got = goclaw("people", "web", "revoke", "nobody")
    assert got.code == 1
    assert "nobody called nobody is invited" in got.err

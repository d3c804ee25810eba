"""Routes, figures, alerts and words of the chat that documents name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from goclaw_py.core.chat_commands import our_command
from goclaw_py.web.api.openapi import operations
from tests.deploy.commands import commands_in, is_command
from tests.deploy.offered import series
from tests.deploy.places import PROMETHEUS, document
from tests.guides.reading import READ_BY_USERS, prose
from tests.support.apps import lend_api
from tests.support.guides import ROOT
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

TROUBLESHOOTING = ROOT / "docs" / "guide" / "troubleshooting.md"
NOT_DESCRIBED = {"/openapi.json", "/metrics", "/healthz", "/readyz"}
"""Not of the API, or the description itself; tests/unit/web asks for each of them."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that a document shows."""

    method: str
    path: str
    query: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def calls(text: str) -> Iterator[Call]:
    """``GET /path?a=&b=`` in the text, and what curl is told to ask for."""
    for method, path, query in re.findall(
        r"\b(GET|POST|PUT|PATCH|DELETE) (/[\w/{}.-]*)(?:\?([^`\s]*))?", text
    ):
        yield _call(method, path, query)
    for line in re.findall(r"^curl .*$", text, re.MULTILINE):
        ((path, query),) = re.findall(r"localhost:8420(/[\w/.-]+)(?:\?([^\s'\"]*))?", line)
        (method,) = re.findall(r"-X (\w+)", line) or ["POST" if " -d " in line else "GET"]
        yield _call(method, path, query)


def _call(method: str, path: str, query: str) -> Call:
    names = tuple(part.partition("=")[0] for part in query.split("&") if part)
    return Call(method, path.rstrip("."), names)


@cache
def offered() -> dict[tuple[str, str], set[str]]:
    """The parameters of each operation, by its method and path."""
    api = lend_api(FakeControl(), FakeTerminals()).openapi()
    return {
        (method.upper(), path): {
            one["name"] for one in operation.get("parameters", []) if one["in"] == "query"
        }
        for path, method, operation in operations(api)
    }


def is_offered(call: Call) -> bool:
    """Whether there is such a route: what is in braces or stands for a name may be anything."""
    if call.path in NOT_DESCRIBED and call.method == "GET":
        return True
    for (method, path), query in offered().items():
        pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))
        if method == call.method and re.fullmatch(pattern, call.path):
            return set(call.query) <= query
    return False


def shown() -> list[Call]:
    found = {call for file in READ_BY_USERS for call in calls(file.read_text("utf-8"))}
    return sorted(found, key=str)


@pytest.mark.parametrize("call", shown(), ids=str)
def test_every_request_is_one_that_the_api_takes(call: Call) -> None:
    assert is_offered(call)


def test_requests_are_found_and_mistakes_in_them() -> None:
    text = "`GET /api/run?active=` and `PUT /api/runs/{id}`\ncurl localhost:8420/api/runs?sesion=a"
    assert [is_offered(call) for call in calls(text)] == [False, False, False]
    assert is_offered(Call("GET", "/api/runs", ("session", "active")))
    assert len(shown()) > 10


def test_every_path_of_the_api_in_the_text_is_one() -> None:
    paths = {path for _, path in offered()}
    named = {
        path
        for file in READ_BY_USERS
        for path in re.findall(r"`(/api/[\w/-]+)`", file.read_text("utf-8"))
    }
    assert len(named) > 1
    # What ends in a slash stands for all below it.
    below = {
        name for name in named if name.endswith("/") and any(p.startswith(name) for p in paths)
    }
    assert named - paths - below == set()


def test_every_figure_is_one_of_the_gateway() -> None:
    known = {name.removesuffix("_bucket") for name in series()}
    text = "\n".join(file.read_text("utf-8") for file in READ_BY_USERS)
    named = set(re.findall(r"\bgoclaw_(?!py\b)[a-z_]+\b(?!\.toml)", text))
    assert len(named) > 15
    assert named - known == set()


def test_every_word_of_the_chat_is_a_command() -> None:
    others = "api chat dev etc healthz home metrics newbot readyz setprivacy telegram"
    named = {
        word for file in READ_BY_USERS for word in re.findall(r"`/([a-z]+)(?=[` ])", prose(file))
    }
    assert {"stop", "heartbeat", "jobs"} <= named
    assert {
        word for word in named - set(others.split()) if our_command(f"/{word}") is None
    } == set()


def alerts() -> dict[str, str]:
    """What troubleshooting.md says to each alert."""
    text = TROUBLESHOOTING.read_text("utf-8")
    rows = re.findall(r"^\| `(Goclaw\w+)` \| (.*) \|$", text, re.MULTILINE)
    return dict(rows)


def test_every_alert_has_its_line_in_troubleshooting_and_no_other() -> None:
    (group,) = document(PROMETHEUS / "alerts.yml")["groups"]
    assert list(alerts()) == [rule["alert"] for rule in group["rules"]]


@pytest.mark.parametrize("alert", alerts())
def test_the_line_of_an_alert_names_a_command_that_tells_more(alert: str) -> None:
    named = commands_in(alerts()[alert])
    others = re.findall(r"`(?:systemctl|docker|kubectl|journalctl) [^`]+`", alerts()[alert])
    assert named or others
    assert all(is_command(words) for words in named)

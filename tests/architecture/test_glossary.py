"""What people read has the words of ``docs/glossary.md``, and the names of today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from goclaw_py.cli.entry import app
from goclaw_py.cli.tree import OLD_NAMES
from goclaw_py.schedule.jobs.policy import FORMER_KEYS
from tests.architecture.sources import ROOT, Module, modules
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

DOCUMENTS = (
    *("README.md", "CHANGELOG.md", "docs/guide/*.md", "examples/README.md"),
    *("goclaw_py/cli/system/goclaw.toml.example", "HEARTBEAT.md.example"),
    *("deploy/prometheus/alerts.yml", "deploy/grafana/*.json"),
    *("goclaw_py/operations/**/*.html", "goclaw_py/web/**/*.html"),
)
"""Files of which people read each line: guides, settings, alerts, dashboards and pages."""

NOT_READ = ("goclaw_py.store", "goclaw_py.testing")
"""The packages whose texts are SQL, or for authors of channels."""

EXCEPT = (
    (r"docs/guide/(logs|metrics)\.md", "outbox|inbox", "fields of the log and names of metrics"),
    (r"openapi\.json .*/Backlog", "outbox|inbox", "keys that programs read"),
    (r"README\.md|docs/guide/(first-bot|cli)\.md", "inbox", "the mailbox of a person"),
    (r"(docs/guide/heartbeat|HEARTBEAT)\.md.*", "inbox", "a folder"),
    (r"docs/guide/channels\.md", "undeliverable", "a class of the library"),
    (r"goclaw_py/agents/tools/schedules\.py", "scheduled tasks?", "copies tools that models know"),
    (r"goclaw_py/schedule/jobs/(policy|texts)\.py", "scheduled task", "prompts for models"),
    (r"docs/guide/profiles\.md", "scheduled task", "a prompt for models"),
    (r"docs/guide/library\.md", "run_timeout_s", "an argument of a function in Python"),
)
"""Files, words and the reason why they are written there."""


@dataclass(frozen=True, slots=True)
class Line:
    """One that people read. ``place`` is its file, command or part of the API."""

    place: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.place}:{self.number}: {self.text.strip()[:120]}"


def lines_of(place: str, text: str, first: int = 1) -> Iterator[Line]:
    for number, line in enumerate(text.splitlines(), first):
        yield Line(place, number, line)


def constants(module: Module) -> Iterator[Line]:
    """The texts of a module: constants with a blank, and the descriptions of settings."""
    place = str(module.path.relative_to(ROOT))
    alone = {
        id(node.value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if " " in node.value and (id(node) not in alone or module.is_in("goclaw_py.config")):
            yield from lines_of(place, node.value, node.lineno)


def helps() -> Iterator[Line]:
    """The help of each command: what it does, and what its options are."""

    def below(command: Any, name: str) -> Iterator[Line]:
        words = [command.help or "", *(getattr(each, "help", "") or "" for each in command.params)]
        yield from lines_of(f"{name} --help", "\n".join(words))
        for word, each in getattr(command, "commands", {}).items():
            yield from below(each, f"{name} {word}")

    return below(typer.main.get_command(app), "goclaw")


def description() -> Iterator[Line]:
    """The description of the API: paths, and all words for people."""

    def below(node: Any, place: str) -> Iterator[Line]:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("description", "summary") and isinstance(value, str):
                yield from lines_of(f"openapi.json {place}", value)
            elif isinstance(value, dict | list):
                yield from below(value, f"{place}/{key}")

    api = lend_api(FakeControl(), FakeTerminals()).openapi()
    for path in api["paths"]:
        yield Line("openapi.json", 1, path)
    yield from below(api, "")


@cache
def read() -> tuple[Line, ...]:
    """All that people read."""
    files = [file for form in DOCUMENTS for file in sorted(ROOT.glob(form))]
    found = [
        line for file in files for line in lines_of(str(file.relative_to(ROOT)), text_of(file))
    ]
    for module in modules():
        if not module.is_in(*NOT_READ):
            found += constants(module)
    return (*found, *helps(), *description())


def text_of(file: Path) -> str:
    return file.read_text("utf-8")


def unused_words() -> dict[str, str]:
    """Each word that the glossary does not use, with the one that it uses."""
    part = text_of(ROOT / "docs" / "glossary.md").partition("## Words that are not used\n")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", part, re.MULTILINE)[1:]
    return {word.strip(): use for use, words in rows for word in words.split(",")}


def found(pattern: str) -> list[str]:
    """The lines with a match that is no exception."""
    wanted = re.compile(pattern, re.IGNORECASE)
    return [
        str(line)
        for line in read()
        if any(not is_excepted(line.place, match[0]) for match in wanted.finditer(line.text))
    ]


def is_excepted(place: str, word: str) -> bool:
    return any(
        re.fullmatch(files, place) and re.fullmatch(words, word, re.IGNORECASE)
        for files, words, _ in EXCEPT
    )


def test_no_word_is_read_that_the_glossary_does_not_use() -> None:
    words = unused_words()
    assert len(words) > 10
    assert found(rf"(?<![-\w])({'|'.join(words)})s?\b(?!-)") == [], words


def test_no_old_name_of_a_command_is_anywhere() -> None:
    """They are hidden; what names them would teach them."""
    assert len(OLD_NAMES) > 5
    assert found(rf"\bgoclaw ({'|'.join(OLD_NAMES)})\b") == []


def test_a_hint_says_what_its_command_does_in_one_form() -> None:
    """``to start one: goclaw run``, not ``start one with: goclaw run``."""
    assert found(r"with: goclaw [a-z]") == []


def test_a_setting_has_one_spelling() -> None:
    """Neither the former keys of policies, nor the unit behind the name of a setting."""
    assert found(rf"\b({'|'.join(FORMER_KEYS)})\b") == []


def test_all_kinds_of_texts_are_read() -> None:
    places = {line.place for line in read()}
    for place in (
        *("docs/guide/jobs.md", "goclaw_py/chat/outbound/texts.py", "goclaw jobs edit --help"),
        *("goclaw_py/operations/deliveries/page.html", "goclaw_py/gateway/why/runs.py"),
        *("goclaw_py/cli/system/goclaw.toml.example", "goclaw_py/config/scheduler.py"),
    ):
        assert place in places, place
    assert any(line.text.startswith("/api/deliveries") for line in read())
    for files, words, _ in EXCEPT:
        assert any(
            re.fullmatch(files, line.place) and re.search(words, line.text, re.IGNORECASE)
            for line in read()
        ), f"an exception that nothing needs: {files} {words}"

"""At a terminal, somebody who gives messages up is asked first."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fake_post, fakes
from tests.unit.web.fakes import FakeControl

DEAD = replace(fakes.DEAD, id=7)


def states(control: FakeControl) -> dict[int, str]:
    return {row.id: row.state.value for row in control.rows}


@pytest.fixture
def control(gateway: ThreadGateway) -> FakeControl:
    gateway.control.rows = [DEAD, fake_post.PENDING]
    return gateway.control


class Terminal:
    """A person before ``goclaw …`` at a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self._keys, theirs = pty.openpty()
        command = [sys.executable, "-m", "goclaw_py", *arguments]
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.screen = ""

    def types(self, text: str) -> None:
        os.write(self._keys, text.encode())

    def sees(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.screen:
            ready, _, _ = select.select([self._keys], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} does not come after {self.screen!r}"
            self.screen += os.read(self._keys, 4096).decode()

    def ends(self) -> int:
        return self._process.wait(20)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._keys)


@pytest.fixture
def person(home: Path) -> Iterator[list[Terminal]]:
    """Holds the terminals that a test opens, to be closed."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_a_person_is_asked_before_messages_are_given_up(
    person: list[Terminal], control: FakeControl
) -> None:
    person.append(terminal := Terminal("outbox", "drop", "7", "3"))
    terminal.sees("Drop them? Dropped messages are never sent. [y/N]")
    assert "7  to console/default/local: hello" in terminal.screen
    assert not {"\x1b", "\u202e"} & set(terminal.screen)
    assert states(control)[7] == "dead"
    terminal.types("y\n")
    terminal.sees("dropped 2")
    assert terminal.ends() == 0
    assert states(control)[7] == "dropped"


def test_who_says_no_changes_nothing(person: list[Terminal], control: FakeControl) -> None:
    control.rows = [replace(DEAD, id=number) for number in range(1, 9)]
    person.append(terminal := Terminal("outbox", "drop", "--all"))
    terminal.sees("Drop all?")
    assert "… and 3 more" in terminal.screen
    terminal.types("\n")
    terminal.sees("goclaw: aborted")
    assert terminal.ends() == 1
    assert set(states(control).values()) == {"dead"}


@pytest.mark.parametrize("arguments", [("drop", "7", "--yes"), ("retry", "7")])
def test_who_has_said_yes_and_who_tries_again_is_not_asked(
    person: list[Terminal], control: FakeControl, arguments: tuple[str, ...]
) -> None:
    person.append(terminal := Terminal("outbox", *arguments))
    terminal.sees(" 1")
    assert terminal.ends() == 0
    assert states(control)[7] != "dead"


def test_one_message_is_it(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.rows = [DEAD]
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    assert goclaw("outbox", "drop", "7").out == "dropped 1\n"
    assert asked == ["Drop it? Dropped messages are never sent."]

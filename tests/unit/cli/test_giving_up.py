"""At a terminal, somebody who gives messages up is asked first."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import person_at
from tests.unit.web import fake_post, fakes
from tests.unit.web.fakes import FakeControl

DEAD = replace(fakes.DEAD, id=7)


def states(control: FakeControl) -> dict[int, str]:
    return {row.id: row.state.value for row in control.rows}


@pytest.fixture
def control(gateway: ThreadGateway) -> FakeControl:
    gateway.control.rows = [DEAD, fake_post.PENDING]
    return gateway.control


def test_a_person_is_asked_before_messages_are_given_up(control: FakeControl) -> None:
    with person_at("outbox", "drop", "7", "3") as person:
        shown = person.sees("Drop them? Dropped messages are never sent. [y/N]")
        assert "7  to console/default/local: hello" in shown
        assert not {"\x1b", "\u202e"} & set(shown)
        assert states(control)[7] == "dead"
        person.types("y\n")
        person.sees("dropped 2")
        assert person.sees_it_end()[0] == 0
    assert states(control)[7] == "dropped"


def test_who_says_no_changes_nothing(control: FakeControl) -> None:
    control.rows = [replace(DEAD, id=number) for number in range(1, 9)]
    with person_at("outbox", "drop", "--all") as person:
        assert "… and 3 more" in person.sees("Drop all?")
        person.types("\n")
        person.sees("goclaw: aborted")
        assert person.sees_it_end()[0] == 1
    assert set(states(control).values()) == {"dead"}


@pytest.mark.parametrize("arguments", [("drop", "7", "--yes"), ("retry", "7")])
def test_who_says_yes_is_not_asked(control: FakeControl, arguments: tuple[str, ...]) -> None:
    with person_at("outbox", *arguments) as person:
        person.sees(" 1")
        assert person.sees_it_end()[0] == 0
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

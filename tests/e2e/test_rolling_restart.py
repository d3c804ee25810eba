"""A rolling restart while people write (SPEC NODE-3)."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.botapi.control import Control
from tests.chaos.agent import Task
from tests.support.process import Home, Program, home, telegram, wait_for

PEOPLE = tuple(range(1001, 1009))
LEASE_S = 10.0
EVERY_S = 0.15
SETTLED_S = 30.0


class Crowd:
    """People who write in turn until they are told to stop; what they asked, and when."""

    def __init__(self, api: Control) -> None:
        self._api = api
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.asked: dict[int, list[tuple[Task, float]]] = {person: [] for person in PEOPLE}

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._over.wait(EVERY_S):
            person = PEOPLE[number % len(PEOPLE)]
            # Some take longer than the others, so that something works at any moment.
            task = Task(number, *((6, 100) if number % 4 == 0 else (1, 0)))
            self.asked[person].append((task, time.monotonic()))
            self._api.say(person, task.prompt)
            number += 1


@pytest.mark.real_time
def test_a_rolling_restart_loses_nothing_doubles_nothing_and_delays_nothing_for_long(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """Each message has one answer, in order, none later than a lease."""
    settings = telegram(
        api,
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_AGENTS__MAIN__MODEL="python:tests.chaos.agent:run",
        GOCLAW_QUEUE__DEBOUNCE_MS="0",
        GOCLAW_LANE_MAIN="8",
        GOCLAW_SHUTDOWN__WAIT="2s",
        GOCLAW_DATABASE_URL=postgres_url,
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        running = {one: one.start(), two: two.start()}
        with Crowd(api) as crowd:
            for place, gateway in running.items():
                until_answered(api, crowd)
                restart(place, gateway)
            until_answered(api, crowd)
        texts = {person: [task.text for task, _ in crowd.asked[person]] for person in PEOPLE}
        for person, expected in texts.items():
            wait_for(
                lambda p=person, e=expected: shown(api, p) == e,  # type: ignore[misc]  # bound early
                f"the answers {expected} to {person}, there are {api.texts(person)}",
                limit_s=SETTLED_S,
            )
        for person in PEOPLE:
            first = first_seen(api, person)
            for task, asked_at in crowd.asked[person]:
                assert first[task.text] - asked_at < LEASE_S, task
            again = Counter(one.text for one in api.sightings(person) if not growing(one.text))
            assert set(again.values()) == {1}, again


def restart(place: Home, gateway: Program) -> None:
    """End it in order, and start another one in its place."""
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0, gateway.output
    place.start()


def until_answered(api: Control, crowd: Crowd) -> None:
    """Wait until somebody who writes from now on is answered."""
    before = {person: len(asked) for person, asked in crowd.asked.items()}

    def look() -> bool:
        new = [task for p in PEOPLE for task, _ in crowd.asked[p][before[p] :]]
        return any(task.text in shown(api, p) for p in PEOPLE for task in new)

    wait_for(look, "an answer", limit_s=SETTLED_S)


def shown(api: Control, person: int) -> list[str]:
    """The whole answers in a chat."""
    return [text for text in api.texts(person) if not growing(text)]


def growing(text: str) -> bool:
    """Whether a text is a draft."""
    return text.endswith("…")


def first_seen(api: Control, person: int) -> dict[str, float]:
    """When each text first stood in a chat, on the clock of all processes of this machine."""
    found: dict[str, float] = {}
    for one in api.sightings(person):
        found.setdefault(one.text, one.since)
    return found

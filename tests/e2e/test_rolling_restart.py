"""A rolling restart while people write (SPEC NODE-3)."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.botapi.control import Control
from tests.chaos.agent import Task
from tests.support.process import Home, Program, home, telegram, wait_for

PEOPLE = tuple(range(1001, 1009))
EVERY_S = 0.15
SETTLED_S = 30.0


class Crowd:
    """People who write in turn until they are told to stop; what they asked."""

    def __init__(self, api: Control) -> None:
        self._api = api
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.asked: dict[int, list[Task]] = {person: [] for person in PEOPLE}

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
            self.asked[person].append(task)
            self._api.say(person, task.prompt)
            number += 1


@pytest.mark.real_time
def test_a_rolling_restart_loses_nothing_doubles_nothing_and_waits_for_no_lease(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """Each message has one answer, in order, and none has to wait for the end of a lease."""
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
        programs: list[Program] = []
        with Crowd(api) as crowd:
            for place, gateway in running.items():
                until_answered(api, crowd)
                programs += [gateway, restart(place, gateway)]
            until_answered(api, crowd)
        texts = {person: [task.text for task in crowd.asked[person]] for person in PEOPLE}
        for person, expected in texts.items():
            wait_for(
                lambda p=person, e=expected: shown(api, p) == e,  # type: ignore[misc]  # bound early
                f"the answers {expected} to {person}, there are {api.texts(person)}",
                limit_s=SETTLED_S,
            )
        for person in PEOPLE:
            again = Counter(one.text for one in api.sightings(person) if not growing(one.text))
            assert set(again.values()) == {1}, again
        for program in programs:
            assert "expired_nodes_recovered" not in program.output, program.output


def restart(place: Home, gateway: Program) -> Program:
    """End it in order, and start another one in its place."""
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0, gateway.output
    return place.start()


def until_answered(api: Control, crowd: Crowd) -> None:
    """Wait until somebody who writes from now on is answered."""
    before = {person: len(asked) for person, asked in crowd.asked.items()}

    def look() -> bool:
        new = [task for p in PEOPLE for task in crowd.asked[p][before[p] :]]
        return any(task.text in shown(api, p) for p in PEOPLE for task in new)

    wait_for(look, "an answer", limit_s=SETTLED_S)


def shown(api: Control, person: int) -> list[str]:
    """The whole answers in a chat."""
    return [text for text in api.texts(person) if not growing(text)]


def growing(text: str) -> bool:
    """Whether a text is a draft."""
    return text.endswith("…")

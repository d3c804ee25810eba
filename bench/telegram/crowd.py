"""People at the Bot API emulator, in a process of its own: they write, and look at the answers.

They are in the emulator's process so that letting them write costs nothing that is measured.
``python -m bench.telegram.crowd`` prints how the emulator is reached, then reads a task from each
line of its input and prints what came of it. Times are the system's monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from bench.scheduler.child import loops, run_on
from bench.telegram.agent import HOLD, RELEASE, answer_to
from tests.botapi import BotApi
from tests.support.process import ROOT

FIRST = 10_001
"""The first user; the others follow."""
FLOODER = 9_001
SOMEBODY = 9_002
"""Who writes while another one floods."""
_LIMIT_S = 300.0
_NOTICES_S = 60.0
_SENDING = ("sendMessage", "editMessageText")
_DROPPED = re.compile(r"so I dropped (\d+) messages?")


@dataclass(frozen=True, slots=True)
class Answered:
    """All messages of a crowd were answered, each chat's in order.

    ``seconds`` are from the first message to the last answer, ``calls`` what the bot asked of the
    server meanwhile.
    """

    seconds: float
    calls: dict[str, int]


@dataclass(frozen=True, slots=True)
class Flooded:
    """One user has written very much in one go.

    Seconds until all of it was confirmed; until somebody else, who wrote at the end of it, was
    answered; and when notices came of what was dropped, counted from the first message.
    """

    confirmed_s: float
    other_s: float
    notices_at_s: list[float]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the bot wrote to the one who has flooded it, in order, without notices."""

    texts: list[str]


class Crowd:
    """Another process with the emulator and its people."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        hello = self._read()
        self.url = str(hello["url"])
        self.token = str(hello["token"])

    def write(self, chats: int, each: int) -> Answered:
        """Let so many people write so many messages each, and wait for the answers.

        Raises ``RuntimeError`` if one is missing, wrong, doubled or out of order.
        """
        return Answered(**self._ask(do="write", chats=chats, each=each))

    def flood(self, messages: int, dropped: int) -> Flooded:
        """Let one user write messages whose answers are held, and then somebody else.

        Returns when notices have told of so many that were dropped; ``RuntimeError`` if they do
        not, or tell of more.
        """
        return Flooded(**self._ask(do="flood", messages=messages, dropped=dropped))

    def answers(self, count: int) -> list[str]:
        """Let the answers go, and wait for so many to the one who has flooded it; all by now."""
        return Answers(**self._ask(do="answers", count=count)).texts

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def _ask(self, **task: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        answer = self._read()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the emulator ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def crowd() -> Iterator[Crowd]:
    """Start one, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.telegram.crowd"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Crowd(process)
        finally:
            # The end of its input ends it.
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


# ---------------------------------------------------------------------------- in that process


async def write(api: BotApi, chats: int, each: int) -> Answered:
    """See ``Crowd.write``."""
    begin, before = time.monotonic(), api.counts()
    for number in range(each):
        for user in range(FIRST, FIRST + chats):
            api.say(user, f"Message {number}", name=f"User {user}")
        # The gateway begins while they write.
        await asyncio.sleep(0)
    users = range(FIRST, FIRST + chats)
    wanted = chats * each + sum(before.get(method, 0) for method in _SENDING)

    def is_done() -> bool:
        return sum(api.records.count(method, ok=True) for method in _SENDING) >= wanted

    await api.until(is_done, timeout_s=_LIMIT_S)
    seconds = time.monotonic() - begin
    calls = {name: count - before.get(name, 0) for name, count in api.counts().items()}
    expected = [answer_to(f"Message {number}") for number in range(each)]
    for user in users:
        if (found := api.texts(user)[-each:]) != expected:
            raise ValueError(f"user {user} was answered {found}")
    return Answered(seconds, calls)


async def flood(api: BotApi, messages: int, dropped: int) -> Flooded:
    """See ``Crowd.flood``."""
    begin = time.monotonic()
    for number in range(messages):
        api.say(FLOODER, f"{HOLD} {number}")
    asked = time.monotonic()
    api.say(SOMEBODY, "Hello")
    confirmed_at, other_at, notices_at = await asyncio.gather(
        _confirmed_at(api), _answered_at(api, SOMEBODY), _notices_at(api, dropped)
    )
    since_begin = [at - begin for at in notices_at]
    return Flooded(confirmed_at - begin, other_at - asked, since_begin)


async def _confirmed_at(api: BotApi) -> float:
    await api.wait_confirmed(timeout_s=_LIMIT_S)
    return time.monotonic()


async def _answered_at(api: BotApi, user: int) -> float:
    await api.wait_texts(user, timeout_s=_LIMIT_S)
    return time.monotonic()


async def _notices_at(api: BotApi, dropped: int) -> list[float]:
    """When notices came, until they have told of all that was dropped."""
    found: list[float] = []
    told = 0
    while told < dropped:
        texts = await api.wait_texts(FLOODER, len(found) + 1, timeout_s=_NOTICES_S)
        told += _told_by(texts[len(found)])
        found.append(time.monotonic())
    if told > dropped:
        raise ValueError(f"notices told of {told} messages, not {dropped}")
    return found


def _told_by(notice: str) -> int:
    """How many messages a notice tells of. Raises ``ValueError``."""
    found = _DROPPED.search(notice)
    if found is None:
        raise ValueError(f"this is no notice: {notice}")
    return int(found[1])


async def answers(api: BotApi, count: int) -> Answers:
    """See ``Crowd.answers``."""

    def found() -> list[str]:
        return [text for text in api.texts(FLOODER) if not _DROPPED.search(text)]

    api.say(SOMEBODY, RELEASE)
    await api.until(lambda: len(found()) >= count, timeout_s=_LIMIT_S)
    return Answers(found())


_TASKS: dict[str, Callable[..., Awaitable[Answered | Flooded | Answers]]] = {
    "write": write,
    "flood": flood,
    "answers": answers,
}


async def _serve() -> None:
    async with BotApi(local=True) as api:
        api.record(on=False)
        print(json.dumps({"url": api.url, "token": api.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _answer(api, json.loads(line))), flush=True)


async def _answer(api: BotApi, task: dict[str, Any]) -> dict[str, Any]:
    name = task.pop("do")
    if name not in _TASKS:
        return {"error": f"no such task: {name}"}
    try:
        return asdict(await _TASKS[name](api, **task))
    except (TimeoutError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}; calls {api.counts()}"}


if __name__ == "__main__":
    run_on(loops()[-1], _serve())

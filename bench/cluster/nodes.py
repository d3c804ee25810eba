"""Gateway processes on one database, each with a home of its own, and people at the emulator."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from bench.cluster.agent import FILE, Note, read
from bench.embedded import server
from goclaw_py.core.ids import MAIN_AGENT, SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import chat_session
from goclaw_py.store.postgres import Address, connection
from goclaw_py.web.sockets import short_path, socket_path
from tests.botapi.control import Control
from tests.support.process import Home, Program, emulator, home, telegram, wait_for

T = TypeVar("T")

_DATABASE: Final = "bench_nodes"
_LIMIT_S: Final = 90.0
_LANE: Final = "100"
_ANSWER_S: Final = 30.0

SETTINGS: Final = {
    "GOCLAW_AGENTS__MAIN__MODEL": "python:bench.cluster.agent:run",
    "GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open",
    "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
    "GOCLAW_LANE_MAIN": _LANE,
}


@dataclass(slots=True)
class Stage:
    """An emulator, an empty database, homes that share both, and the agents' notes."""

    api: Control
    address: Address
    folder: Path
    homes: Sequence[Home]
    _number: int = 0
    _running: dict[int, Program] = field(default_factory=dict)

    @property
    def notes(self) -> list[Note]:
        """Of all runs so far."""
        return read(self.folder / "notes")

    @property
    def running(self) -> Sequence[Program]:
        """All gateways that were started."""
        return list(self._running.values())

    def start(self, place: int) -> Program:
        """A gateway in one of the homes; returns when it is ready."""
        program = self.homes[place].start()
        self._running[place] = program
        return program

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait for something; what the gateways have to say goes with the error."""
        try:
            return wait_for(look, what, limit_s=_LIMIT_S)
        except AssertionError as error:
            for program in self._running.values():
                error.add_note(program.output[-3000:])
            raise

    def began(self, prompts: Sequence[str], *, by: int | None = None) -> dict[str, float]:
        """When each of these runs began, in a process or in any; waits for all."""

        def look() -> dict[str, float] | None:
            found = {
                note.prompt: note.at_s
                for note in self.notes
                if note.what == "began" and by in (None, note.process)
            }
            return found if found.keys() >= set(prompts) else None

        found = self.until(look, f"runs of {len(prompts)} messages")
        return {prompt: found[prompt] for prompt in prompts}

    def ended(self, prompt: str) -> float:
        """When the task of a run ended; waits for it."""

        def look() -> float | None:
            ends = (n.at_s for n in self.notes if n.what == "ended" and n.prompt == prompt)
            return next(ends, None)

        return self.until(look, f"the end of {prompt}")

    def post(self, place: int, path: str, body: object = None) -> object:
        """Ask a gateway on its socket, as the commands do. Raises ``RuntimeError``."""
        with short_path(socket_path(self.homes[place].state)) as name:
            line = _Line(str(name))
            line.request(
                "POST",
                quote(path),
                None if body is None else json.dumps(body),
                {"content-type": "application/json", "host": "localhost"},
            )
            answer = line.getresponse()
            said = answer.read()
            line.close()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {said!r}")
        return json.loads(said) if said else None


class _Line(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_ANSWER_S)
        self.sock.connect(self._path)


@contextmanager
def stage(homes: int, **settings: str) -> Iterator[Stage]:
    """Everything, with no gateway yet; all that was started has ended afterwards."""
    with ExitStack() as stack:
        address = stack.enter_context(server())
        asyncio.run(_make(address))
        api = stack.enter_context(emulator())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goclaw-bench-")))
        url = f"postgresql:///{_DATABASE}?host={address.host}&user={address.user}"
        env = telegram(
            api, **(SETTINGS | settings), GOCLAW_DATABASE_URL=url, **{FILE: str(folder / "notes")}
        )
        made = [stack.enter_context(home(folder / f"home-{n}", **env)) for n in range(homes)]
        yield Stage(api, replace(address, database=_DATABASE), folder, made)


async def _make(address: Address) -> None:
    async with connection(address) as one:
        await one.script(f"create database {_DATABASE}")


def session_of(user: int) -> SessionKey:
    """The session of somebody's direct chat."""
    return chat_session(MAIN_AGENT, Target("telegram", "default", str(user)), PeerKind.DIRECT)

"""Plays a script with three real gateways, and has what came of it checked."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, connection
from tests.botapi.control import Control
from tests.botapi.records import Sighting
from tests.chaos import checker
from tests.chaos.agent import Task
from tests.chaos.cluster import agent, books, hands
from tests.chaos.cluster.faults import Away, Faults
from tests.chaos.cluster.lines import Line, lines
from tests.chaos.cluster.nodes import Node, nodes
from tests.chaos.cluster.script import FIRST_USER, NODES, OF_DATABASE, Kind, Script
from tests.chaos.cluster.server import Server
from tests.chaos.facts import Facts, names
from tests.chaos.invariants import broken
from tests.chaos.rounds import PATH, PUBLIC, free_port
from tests.support.postgres import run_sql
from tests.support.process import emulator, telegram

_SETTLE_S: Final = 90.0
_LOOK_S: Final = 0.25
_CALM_LOOKS: Final = 3
"""So often nothing is left before it counts: what has just ended may ask for more."""
_FIRST_CHAT_OF_JOBS: Final = FIRST_USER - 1000
_CHAT_OF_ALERTS: Final = FIRST_USER - 1
_HEARTBEAT_ANSWERS: Final = ("ada", "ben")
_TEMPLATE: Final = "cluster_template"
_FALLS: Final = frozenset([Kind.KILL, Kind.END, Kind.FREEZE])
"""After which a process may owe somebody the answer to a stop."""
_HANGS_UP_S: Final = 3.0
"""How long a server waits for a webhook; the real one is more patient."""
_DATABASE_S: Final = 12.0
"""So close to trouble with the database nothing says how quickly work is taken over."""


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a script.

    Args:
        breaches: What was wrong, in words.
        said: What the gateways have said, if anything was wrong.
        moved: How long it took until others began what waited at a process that was killed, or
            ended in order; seconds each, by kind.
        stray_s: How long, together, agents worked for runs that somebody else had been given.
        counts: How much there was, for people.
    """

    script: Script
    breaches: tuple[str, ...]
    said: str = ""
    moved: Mapping[Kind, Sequence[float]] = field(default_factory=dict)
    stray_s: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Stage:
    """A database server for all rounds; everything else is new in each."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder = folder
        self._server = server
        self._played = 0

    def prepare(self) -> None:
        """Make the database that those of rounds are copies of."""
        self._server.start()
        asyncio.run(_make_template(self._server.address))

    def play(self, script: Script) -> Round:
        """Play one round, to its end or not; all that was started has ended afterwards."""
        try:
            return self._play(script)
        except Exception:
            return Round(script, (f"the round failed:\n{traceback.format_exc()}",))

    def _play(self, script: Script) -> Round:
        began = time.monotonic()
        self._played += 1
        name = f"round{self._played}"
        folder = self._folder / name
        folder.mkdir(parents=True)
        self._server.start()
        sql = f"create database {name} template {_TEMPLATE}"
        asyncio.run(run_sql(self._server.address, sql))
        with ExitStack() as stack:
            address = replace(self._server.address, database=name)
            api = stack.enter_context(emulator())
            ways = stack.enter_context(lines(folder, self._server.folder, NODES))
            settings = [_settings(api, address, way, folder) for way in ways]
            if script.webhooks:
                settings = hooked(api, settings)
            cluster = stack.enter_context(nodes(folder, ways, settings, script.kinds))
            game = _Game(script, api, cluster, self._server, address, folder)
            played = game.play()
        try:
            self._server.start()
            asyncio.run(run_sql(self._server.address, f"drop database {name} with (force)"))
        except Exception:  # beside what made it so
            played = replace(played, breaches=(*played.breaches, traceback.format_exc()))
        return replace(played, seconds=time.monotonic() - began)


class _Game:
    """One round while it is played."""

    def __init__(
        self,
        script: Script,
        api: Control,
        cluster: Sequence[Node],
        server: Server,
        address: Address,
        folder: Path,
    ) -> None:
        self._script = script
        self._api = api
        self._nodes = cluster
        self._address = address
        self._journal = folder / "journal"
        self._faults = Faults(cluster, server, address)
        self._said: list[tuple[int, str]] = []
        self._troubles: list[str] = []

    def play(self) -> Round:
        try:
            return self._play()
        except Exception:
            self._troubles.append(f"the round failed:\n{traceback.format_exc()}")
            troubles = (*self._troubles, *self._faults.troubles)
            return Round(self._script, troubles, self._output())
        finally:
            # What comes now ends all that the faults are about.
            self._faults.end()

    def _output(self) -> str:
        return "".join(node.output for node in self._nodes)

    def _play(self) -> Round:
        for node in self._nodes:
            _equip(node)
            node.start()
        for node in self._nodes:
            node.wait_ready()
        self._greet()
        begun = time.monotonic()
        self._faults.begin(self._script.faults, begun)
        for saying in self._script.sayings:
            time.sleep(max(0.0, begun + saying.at_s - time.monotonic()))
            self._say(saying.user, saying.text)
        time.sleep(max(0.0, begun + self._script.length_s - time.monotonic()))
        self._faults.join()
        self._settle()
        return self._result(asyncio.run(books.read(self._address)), begun)

    def _greet(self) -> None:
        """Let chats of jobs and alerts be there, and make the jobs."""
        for chat in (*map(_chat_of, range(self._script.jobs)), _CHAT_OF_ALERTS):
            self._say(chat, Task(chat * 10, 1, 0).prompt)
        for number in range(self._script.jobs):
            hands.make(self._nodes[0].home, _job(number))

    def _say(self, chat: int, text: str) -> None:
        self._api.say(chat, text)
        self._said.append((chat, text))

    # ------------------------------------------------------------------ the end

    def _settle(self) -> None:
        """Let nothing new come due, wait until nothing is left, and end all gateways."""
        for node in self._nodes:
            if not node.alive():
                self._troubles.append(f"node {node.number} is gone:\n{node.output[-3000:]}")
                node.start()
        for node in self._nodes:
            node.wait_ready()
        hands.quieten(
            self._nodes[0].home, _HEARTBEAT_ANSWERS, [f"job{n}" for n in range(self._script.jobs)]
        )
        end = time.monotonic() + _SETTLE_S
        calm = 0
        while calm < _CALM_LOOKS and time.monotonic() < end:
            calm = 0 if self._left() else calm + 1
            time.sleep(_LOOK_S)
        if left := self._left():
            self._troubles.append(f"left after {_SETTLE_S:g} s: {left}: {self._open()}")
        for node in self._nodes:
            node.send(signal.SIGTERM)
        for node in self._nodes:
            assert node.program is not None
            code = node.program.wait(60)
            if code != 0:
                self._troubles.append(f"node {node.number} ended with {code}")

    def _left(self) -> dict[str, int]:
        async def look() -> dict[str, int]:
            async with connection(self._address) as opened:
                return dict(await books.Books(opened).left())

        found = asyncio.run(look())
        waiting = self._api.pending()
        return found | ({"updates": waiting} if waiting else {})

    def _open(self) -> str:
        """What has not ended while all nodes still live."""

        async def look() -> str:
            async with connection(self._address) as opened:
                known = books.Books(opened)
                facts, there = await known.facts(), await known.nodes()
            runs = [run for run in facts.runs if run.outcome is None]
            rows = [row for row in facts.messages if row.outcome is None]
            posts = [post for post in facts.posts if post.state in ("pending", "sending")]
            return f"{runs} {rows} {posts} {facts.claims} nodes {there}"

        return asyncio.run(look())

    def _result(self, rows: Facts, begun: float) -> Round:
        chats = sorted({chat for chat, _ in self._said})
        sightings = {chat: self._api.sightings(chat) for chat in chats}
        noted = books.journal(self._journal)
        facts = replace(
            rows,
            said=books.said(self._said),
            seen=tuple(
                one for chat in chats for one in books.seen(chat, sightings[chat], rows.posts)
            ),
            worked=books.worked(noted, self._faults.frozen),
            nobody_fell=not self._script.kinds & _FALLS,
        )
        breaches = [
            *self._troubles,
            *self._faults.troubles,
            *map(str, broken(facts)),
            *self._checked(facts, sightings),
        ]
        counts = {
            "messages": len(facts.messages),
            "runs": len(facts.runs),
            "occurrences": len(facts.occurrences),
            "heartbeat_runs": len(facts.heartbeat_runs),
            "posts": len(facts.posts),
            "possible duplicates": sum(post.possible_duplicate for post in facts.posts),
            "lost runs": sum(run.outcome == "lost" for run in facts.runs),
            "nodes that answered": len({r.node for r in facts.runs if r.trigger == "chat"}),
        }
        moved = self._moved(noted, begun)
        said = self._output() if breaches else ""
        return Round(self._script, tuple(breaches), said, moved, stray_s(noted), counts)

    def _checked(self, facts: Facts, sightings: Mapping[int, Sequence[Sighting]]) -> Iterator[str]:
        """What people saw of drafts and ends, more closely than the invariants do."""
        for user in self._script.users:
            said = [saying for saying in self._script.sayings if saying.user == user]
            chat = checker.Chat(
                id=user,
                asked=[saying.task for saying in said if saying.task is not None],
                stops=sum(saying.task is None for saying in said),
                seen=sightings[user],
                taken=[
                    checker.Taken(row.text, row.outcome, row.attempts)
                    for row in facts.messages
                    if row.chat == str(user) and not row.command
                ],
                replies=[
                    checker.Reply(post.text, post.state, post.possible_duplicate, post.draft)
                    for post in facts.posts
                    if post.chat == str(user) and names(post.text)
                ],
            )
            yield from map(str, checker.check_round([chat], checker.Left()).violations)

    def _moved(self, noted: Sequence[books.Noted], begun: float) -> Mapping[Kind, Sequence[float]]:
        found: dict[Kind, list[float]] = {Kind.KILL: [], Kind.END: []}
        for away in self._faults.away:
            if not self._disturbed(away, begun):
                found[away.kind] += taken_over(away, noted)
        return found

    def _disturbed(self, away: Away, begun: float) -> bool:
        """Whether the database was in trouble then: nobody could have taken anything over."""
        return any(
            begun + fault.at_s < away.at + _DATABASE_S
            and begun + fault.until_s > away.at - _DATABASE_S
            for fault in self._script.faults
            if fault.kind in OF_DATABASE
        )


def taken_over(away: Away, noted: Sequence[books.Noted]) -> Iterator[float]:
    """How long each session waited for the next begin in another process."""
    first: dict[str, float] = {}
    for one in noted:
        if one.session in away.waiting and one.pid != away.pid and one.began > away.at:
            first.setdefault(one.session, one.began)
    return (began - away.at for began in first.values())


def stray_s(noted: Sequence[books.Noted]) -> float:
    """How long two worked for one session, though nobody hears of what one of them did."""
    total = 0.0
    of: dict[str, list[books.Noted]] = {}
    for one in sorted(noted, key=lambda one: one.began):
        for other in of.setdefault(one.session, []):
            if other.ended is not None and other.ended > one.began:
                total += min(other.ended, one.ended or other.ended) - one.began
        of[one.session].append(one)
    return total


# ---------------------------------------------------------------------------- what there is


async def _make_template(address: Address) -> None:
    await run_sql(address, f"create database {_TEMPLATE}")
    async with connection(replace(address, database=_TEMPLATE)) as opened:
        await migrate.migrate(opened)


def _settings(api: Control, address: Address, line: Line, folder: Path) -> dict[str, str]:
    dsn = f"postgresql://{address.user}@/{address.database}?host={quote(str(line.folder))}"
    return telegram(
        api,
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_AGENTS__MAIN__MODEL="python:tests.chaos.cluster.agent:run",
        GOCLAW_QUEUE__DEBOUNCE_MS="0",
        GOCLAW_LANE_MAIN="16",
        GOCLAW_SHUTDOWN__WAIT="2s",
        GOCLAW_DATABASE_URL=dsn,
        **{agent.JOURNAL: str(folder / "journal")},
    )


def hooked(api: Control, settings: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Let the server bring updates to each node in turn."""
    ports = [free_port() for _ in settings]
    api.route(PUBLIC, [f"http://127.0.0.1:{port}" for port in ports])
    api.webhook_pace(timeout_s=_HANGS_UP_S)
    hook = {"GOCLAW_CHANNELS__TELEGRAM__WEBHOOK_URL": PUBLIC + PATH}
    return [
        {**own, **hook, "GOCLAW_WEB__PORT": str(port)}
        for own, port in zip(settings, ports, strict=True)
    ]


def _equip(node: Node) -> None:
    """Two more agents, whose hearts beat, the one quickly."""
    text = ""
    for name, interval in zip(_HEARTBEAT_ANSWERS, ("2s", "5s"), strict=True):
        folder = node.home / "workspaces" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "HEARTBEAT.md").write_text("# Checklist\n\n- [ ] look at the sky\n")
        text += (
            f'[agents.{name}]\nmodel = "python:tests.chaos.cluster.agent:run"\n'
            f'[agents.{name}.heartbeat]\ninterval = "{interval}"\n'
            f'target = "telegram:{_CHAT_OF_ALERTS}"\n'
        )
    # Agent main is only spoken to.
    text += "[agents.main.heartbeat]\nenabled = false\n"
    (node.home / "goclaw.toml").write_text(text)


def _chat_of(job: int) -> int:
    return _FIRST_CHAT_OF_JOBS + job


def _job(number: int) -> dict[str, object]:
    """Half of them deliver a text, half of them ask the agent; some are due more often.

    What they ask, they ask in the session of somebody who writes, on whatever node that is.
    """
    text = {"kind": "message", "text": f"tick {number}"}
    work = {"kind": "prompt", "text": f"work {200 * number} ms"}
    return {
        "slug": f"job{number}",
        "schedule": {"kind": "every", "every_ms": 2000 + 500 * number},
        "payload": work if number % 2 else text,
        "target": {"channel": "telegram", "account": "default", "chat": str(_chat_of(number))},
        "session": f"agent:main:telegram:direct:{FIRST_USER + number}",
        "policy": {"anchor": "grid", "session": "key"},
    }


@contextmanager
def stage(folder: Path, server: Server) -> Iterator[Stage]:
    """Everything that rounds have in common."""
    made = Stage(folder, server)
    made.prepare()
    yield made

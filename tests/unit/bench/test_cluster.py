"""The pure parts of the benchmark of several gateways; nothing here is timed.

That it runs to its end is shown by ``python -m bench.cluster --quick``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cluster import __main__ as cluster
from bench.cluster import million, stops, takeover
from bench.cluster.agent import BEGAN, ENDED, FILE, HOLD, Note, read, run
from bench.cluster.million import Cost, Found, cost, is_slow, stop
from bench.cluster.people import said, session_of
from bench.cluster.rows import LEFT
from bench.cluster.stops import Reactions
from bench.cluster.takeover import Waits
from bench.cluster.throughput import Load
from bench.cluster.watched import Statement, Watch, names
from bench.scheduler.report import Report
from goclaw_py.core.chat_commands import StopCommand, command_of
from goclaw_py.core.ids import MAIN_AGENT, RunId
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import RunRequest, TextPart
from goclaw_py.testing.clock import START
from tests.unit.bench.reports import wanted


def ask(prompt: str, session: str = "1") -> RunRequest:
    return RunRequest(
        RunId("r"), session_of(session), MAIN_AGENT, Trigger.CHAT, (TextPart(prompt),)
    )


async def test_an_agent_holds_a_prompt_once_and_then_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes"
    monkeypatch.setenv(FILE, str(file))
    assert await run(ask("hello"), lambda _: None) == "hello: done"
    file.write_text(f"{BEGAN} 1.5 7 {HOLD} 1\n")
    assert await run(ask(f"{HOLD} 1"), lambda _: None) == f"{HOLD} 1: done"


def test_a_note_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    assert read(file) == []
    file.write_text(f"{BEGAN} 1.5 7 hold 1\n{ENDED} 2.5")
    assert read(file) == [Note(BEGAN, 1.5, 7, "hold 1")]


def test_a_stop_is_one_and_has_an_id_of_its_own() -> None:
    message = said("7", 3, START)
    assert isinstance(command_of(stop(message), None), StopCommand)
    assert stop(message).external_id != message.external_id


def test_every_statement_of_the_store_has_a_name() -> None:
    found = names()
    assert ["inbox.accept"] in found.values()
    assert "" not in found


def test_statements_are_counted_by_name_and_the_slowest_arguments_are_kept() -> None:
    watch = Watch()
    text = next(text for text, called in names().items() if called == ["inbox.accept"])
    for ms, argument in ((1.0, "a"), (30.0, "b"), (2.0, "c")):
        watch.note(text, ms, (argument,))
    watch.note("select 1", 99.0, ())
    (statement,) = watch.take()
    assert (statement.name, statement.ms, statement.slowest) == (
        "inbox.accept",
        [1.0, 30.0, 2.0],
        ("b",),
    )
    assert cost(statement) == Cost("inbox.accept", 3, 2.0, 30.0)
    assert watch.take() == []
    assert "inbox.accept" not in watch.unseen(["inbox.accept"])
    assert "inbox.accept" in watch.unseen([])


@pytest.mark.parametrize(
    ("ms", "slow"), [([1.0, 1.0, 9.0], False), ([6.0, 6.0], True), ([1.0, 1.0, 11.0], True)]
)
def test_slow_is_what_takes_long_as_a_rule_or_once(ms: list[float], slow: bool) -> None:
    assert is_slow(Statement("x", "", ms)) is slow


def test_the_sizes_are_those_that_are_wanted() -> None:
    sizes = cluster.Sizes()
    assert sizes.rows == 1_000_000
    assert (sizes.kills, sizes.stops) == (20, 50)
    assert sizes.load.chats >= 200
    assert Load(3, 4).messages == 12
    assert sizes.rows > LEFT


def bounds(report: Report) -> dict[str, str]:
    return {label: bound for (label, _), bound in wanted(report).items()}


def test_each_way_to_go_has_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits([10.0, 11.0], [9.0], [12.0])
    monkeypatch.setattr(takeover, "killed", lambda _: waits)
    monkeypatch.setattr(takeover, "ended", lambda _: waits)
    report = cluster.taking_over(cluster.QUICK)
    assert bounds(report) == {
        f"{how}, {what}": bound
        for how, bound in (("kill -9", "≤ 15"), ("SIGTERM", "≤ 2"))
        for what in ("running", "waiting", "new")
    }
    assert [figure.median for figure in report.lines[0].figures] == [11.0, 11.0, 11.0, 2]
    assert report.lines[3].figures[1].reached is False


def test_each_way_to_stop_has_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "measure", lambda _: Reactions([0.1], [0.4], [0.01]))
    report = cluster.stopping(cluster.QUICK)
    assert set(wanted(report).values()) == {"≤ 0.3"}
    assert [line.figures[1].reached for line in report.lines] == [True, False, True]


def test_every_statement_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(
        [Cost("inbox.accept", 9, 1.0, 2.0)], [], [Cost("a.b", 1, 1.0, 20.0)], [], ["a.b"], ["c.d"]
    )
    monkeypatch.setattr(million, "measure", lambda *_: found)
    report = cluster.large(cluster.QUICK)
    assert bounds(report) == {"singly, inbox.accept": "≤ 10", "lists, a.b": "≤ 10"}
    assert report.about.endswith("Not asked: c.d")

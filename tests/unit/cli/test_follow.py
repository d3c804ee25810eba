"""``goclaw runs follow``: what it prints, and how it ends (SPEC OPS-1)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from goclaw_py.cli.output import clock
from goclaw_py.cli.runs.follow import lines
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import Usage
from goclaw_py.runs.events.live import LiveEnded, LiveEvent, LiveMissed, LiveNow
from tests.unit.cli.conftest import Done, Shell, ThreadGateway
from tests.unit.cli.processes import person_at, piped
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

AT = clock(fakes.NOW)
HERE = f"{AT}  main  console:direct:local  "


@pytest.fixture
def gateway_with_runs(home: Path) -> Iterator[ThreadGateway]:
    """A gateway that tells everything that there is and goes away."""
    made = ThreadGateway(home)
    for event in [*fakes.FOLLOWED[1:], None]:
        made.control.events.put_nowait(event)
    with made.running():
        yield made


def test_each_event_is_one_line(goclaw: Shell, gateway_with_runs: ThreadGateway) -> None:
    out = goclaw("runs", "follow", "console").out
    following, *shown = out.splitlines()
    assert following == f"{AT}  following {fakes.SESSION}; press Ctrl-C to quit"
    in_lane, in_line, asked, joined, started, text, *others = shown
    assert in_lane.endswith(f"main  console:direct:local  running, for 1.5 s (run {fakes.RUN_ID})")
    assert "waiting for lane main: no slot is free, for 3.2 s" in in_line
    assert asked == (
        f"{AT}  helper]0;x  subagent:0190-dddd  submitted by run {fakes.RUN_ID} (run 0190-dddd)"
    )
    assert joined == f"{HERE}run {fakes.RUN_ID} was merged into run 0190-eeee"
    assert started == f"{HERE}started (run {fakes.RUN_ID})"
    assert text == f"{HERE}says: Zeile 1 event: now data: ü [2J"
    assert others == [
        f"{HERE}calls read file",
        f"{HERE}read_file returned",
        f"{HERE}send_file failed",
        f"{HERE}used 1 model request, 20 tokens in, 30 out, $0.0123 so far by offline",
        f"{AT}  12 events were lost, because output is read too slowly",
        (
            f"{HERE}cancelled (stopped), used 2 model requests, 20 tokens in, 30 out "
            f"(run {fakes.RUN_ID})"
        ),
        f"{AT}  helper]0;x  subagent:0190-dddd  completed (run 0190-dddd)",
    ]
    assert not set("\x1b\x07\x85\u202e\u2028\r") & set(out)


@pytest.mark.parametrize("event", fakes.FOLLOWED, ids=lambda event: event.kind)
def test_no_event_can_make_lines_of_its_own(event: LiveEvent) -> None:
    shown = list(lines(event))
    assert all(len(line.splitlines()) == 1 for line in shown)
    assert len(shown) == 3 if isinstance(event, LiveNow) else len(shown) <= 1


@pytest.mark.parametrize(("event", "line"), [
    (LiveNow(fakes.NOW, None, ()), f"{AT}  following all sessions; press Ctrl-C to quit"),
    (
        LiveEnded(fakes.NOW, fakes.LIVE_RUN, Outcome.COMPLETED, None, Usage()),
        f"{HERE}completed (run {fakes.RUN_ID})",  # no model was asked: nothing was used
    ),
    (LiveMissed(fakes.NOW, 1), f"{AT}  1 event was lost, because output is read too slowly"),
], ids=["all", "unused", "one"])  # fmt: skip
def test_other_events(event: LiveEvent, line: str) -> None:
    assert list(lines(event)) == [line]


def test_programs_get_json(goclaw: Shell, gateway_with_runs: ThreadGateway) -> None:
    events = [json.loads(line) for line in goclaw("runs", "follow", "--json").out.split("\n")[:-1]]
    assert [event["kind"] for event in events] == [event.kind for event in fakes.FOLLOWED]
    assert events[4]["text"] == fakes.FOLLOWED[4].text  # type: ignore[union-attr]
    assert events[0]["runs"][1]["waits_for"] == "lane"
    assert gateway_with_runs.control.calls == [("follow", None)]


def test_a_gateway_that_goes_away_is_told(goclaw: Shell, gateway_with_runs: ThreadGateway) -> None:
    got = goclaw("runs", "follow")
    said = "goclaw: the gateway has shut down or closed the connection; to start one: goclaw run\n"
    assert (got.code, got.err) == (3, said)


NO_GATEWAY = "goclaw: no gateway is running here; to start one: goclaw run\n"


def test_without_a_gateway_there_is_nothing_to_follow(goclaw: Shell, database: FakeControl) -> None:
    for command in (["runs", "follow"], ["runs", "follow", "ann", "--json"]):
        assert goclaw(*command) == Done(3, "", NO_GATEWAY)


def test_an_unknown_session_is_an_error(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("runs", "follow", "nobody")
    assert (got.code, got.out, "nobody" in got.err) == (1, "", True)


@pytest.mark.parametrize("words", [[" "], [""], ["a", "b"], ["--session", "a"]])
def test_wrong_words_are_refused(goclaw: Shell, gateway: ThreadGateway, words: list[str]) -> None:
    assert goclaw("runs", "follow", *words).code == 2
    assert gateway.control.calls == []


@pytest.mark.slow
def test_ctrl_c_ends_it_in_peace(gateway: ThreadGateway) -> None:
    with person_at("runs", "follow") as person:
        person.sees("press Ctrl-C to quit")
        person.presses(signal.SIGINT)
        code, shown = person.sees_it_end()
    assert (code, "Traceback" in shown) == (0, False)


def test_in_a_pipe_each_event_is_there_at_once(gateway: ThreadGateway) -> None:
    with piped("runs", "follow", "--json") as (process, out):
        assert json.loads(out.readline())["kind"] == "now"
        gateway.tell(fakes.FOLLOWED[3])
        assert json.loads(out.readline())["kind"] == "started"
        process.send_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_any_more_ends_it(gateway: ThreadGateway) -> None:
    with piped("runs", "follow", "--json") as (_, out):
        out.readline()
        out.close()
        # Nothing more happens: it is not the next line that tells.

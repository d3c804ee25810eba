"""What was noted and seen becomes facts, and figures that can be told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.botapi.records import Sighting
from tests.chaos.cluster import books
from tests.chaos.cluster.books import Noted
from tests.chaos.cluster.faults import Away
from tests.chaos.cluster.rounds import stray_s, taken_over
from tests.chaos.cluster.script import Kind
from tests.chaos.facts import Post, Timetable

ANN = 7
DEAD, LIVE = 100, 200


def noted(session: str, pid: int, began: float, ended: float | None) -> Noted:
    return Noted(f"{session}{began}", session, "chat", pid, began, ended)


def test_a_run_without_an_end_in_the_journal_died_with_its_process(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    begin = {"event": "begin", "session": "s", "trigger": "chat", "pid": 1, "prompt": "?"}
    lines = [
        begin | {"run": "a", "at": 1.0},
        begin | {"run": "b", "at": 2.0},
        {"event": "end", "run": "b", "at": 3.5},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [(one.run, one.ended) for one in books.journal(file)] == [("a", None), ("b", 3.5)]
    assert books.journal(tmp_path / "none") == []


def test_drafts_are_no_messages_unless_that_was_said() -> None:
    closed = "m1 1\n\n⏹ Stopped."
    texts = ["m1 1 …", closed, "m2 1"]
    sightings = [Sighting(number, text, 1.0, None) for number, text in enumerate(texts)]
    posts = [Post(1, str(ANN), closed, "sent"), Post(2, "8", "m1 1 …", "sent")]
    assert [one.text for one in books.seen(ANN, sightings, [])] == ["m2 1"]
    assert [one.text for one in books.seen(ANN, sightings, posts)] == [closed, "m2 1"]


def test_taking_over_lasts_until_another_process_begins_what_waited() -> None:
    away = Away(Kind.KILL, DEAD, 10.0, frozenset({"a", "b"}))
    journal = [
        noted("a", DEAD, 9.0, None),
        noted("a", LIVE, 9.5, 9.6),
        noted("a", LIVE, 14.0, 15.0),
        noted("a", LIVE, 15.0, 16.0),
        noted("c", LIVE, 11.0, 12.0),
    ]
    assert list(taken_over(away, journal)) == [4.0]


def test_a_job_is_due_on_its_grid_after_it_was_made() -> None:
    made = datetime(2026, 1, 1, 10, 0, 0, 700_000, UTC)
    origin = made.replace(microsecond=0)
    row = {"id": "j", "created_at": made, "every_s": 2.5, "coalesced": 4}
    expected = Timetable("j", origin.timestamp() + 2.5, 2.5, 4)
    assert books.timetable({**row, "origin": origin.isoformat()}) == expected
    earlier = origin - timedelta(seconds=3)
    expected = Timetable("j", earlier.timestamp() + 5.0, 2.5, 4)
    assert books.timetable({**row, "origin": earlier.isoformat()}) == expected


def test_work_in_vain_is_what_two_do_at_a_time_in_one_session() -> None:
    journal = [
        noted("a", DEAD, 1.0, 9.0),
        noted("a", LIVE, 6.0, 8.0),
        noted("b", LIVE, 6.0, 8.0),
        noted("b", DEAD, 1.0, None),
    ]
    assert stray_s(journal) == 2.0

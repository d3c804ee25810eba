"""The benchmark of jobs beside other work on the same cores; nothing here is timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.busy import busy_loops
from bench.jobs import __main__ as jobs
from bench.jobs.measure import Late
from tests.unit.bench.reports import no_server


def test_busy_loops_run_until_the_measurement_ends() -> None:
    with busy_loops(2) as loops:
        assert all(Path(f"/proc/{loop}").exists() for loop in loops)
    assert not any(Path(f"/proc/{loop}").exists() for loop in loops)


def test_so_many_busy_loops_as_were_asked_for_run_beside_everybody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    busy: list[int] = []

    def measure(_: object, *arguments: int) -> Late:
        busy.append(arguments[-1])
        return Late(1, 2, 3)

    monkeypatch.setattr(jobs, "server", no_server)
    monkeypatch.setattr(jobs, "find_spec", lambda name: name)
    monkeypatch.setattr(jobs, "in_child", measure)
    monkeypatch.setattr("sys.argv", ["bench", "together", "--quick", "--busy", "6"])
    jobs.main()
    assert busy == [6, 6]
    assert "6 busy loops" in capsys.readouterr().out

"""Two commits side by side; nothing here is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bench.compare import __main__ as compare
from bench.compare import measurements, trees
from bench.compare.__main__ import Comparison, Row
from bench.compare.measurements import Measurement, MeasurementFailed, Reading, Readings
from bench.compare.trees import CannotCompare, Side
from bench.scheduler.report import Figure, Line, Report
from bench.telegram.gateways import HERE, Tree
from tests.support.process import wait_for

THIS = Side("this", HERE)
OTHER = Side("other", Tree(Path("/other"), Path("/other/.venv/bin/python")))
INBOX = Measurement("inbox", "inbox", ("bench.inbox",), in_own_tree=True)
TELEGRAM = Measurement("telegram", "telegram", ("bench.telegram", "answering"))


def rate(value: float) -> Readings:
    return {("callers", "stored"): Reading(value, "/s")}


def test_the_side_that_begins_alternates() -> None:
    seen: list[tuple[str, str]] = []

    def once(each: Measurement, side: Side) -> Readings:
        seen.append((each.name, side.name))
        return rate(1)

    Comparison((THIS, OTHER)).measure([INBOX, TELEGRAM], 3, once)
    order = [side for name, side in seen if name == "inbox"]
    assert order == ["this", "other", "other", "this", "this", "other"]
    assert [name for name, _ in seen[:4]] == ["inbox", "inbox", "telegram", "telegram"]


def test_ratios_are_those_within_rounds() -> None:
    values = {"this": iter([100.0, 30.0, 300.0]), "other": iter([100.0, 60.0, 200.0])}
    found = Comparison((THIS, OTHER))
    found.measure([INBOX], 3, lambda _, side: rate(next(values[side.name])))
    expected = Row("inbox: callers", "stored", "/s", 100, 100, 1.0, 0.5, 1.5, 3)
    assert list(found.rows()) == [expected]


def test_a_measurement_that_fails_is_noted_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rounds = iter(range(4))

    def once(each: Measurement, side: Side) -> Readings:
        if next(rounds) == 1:
            raise MeasurementFailed("no server")
        return rate(20 if side is THIS else 10)

    found = Comparison((THIS, OTHER))
    found.measure([INBOX], 2, once)
    assert found.failures == ["inbox: other, round 1 of 2: no server"]
    assert list(found.rows()) == [Row("inbox: callers", "stored", "/s", 20, 10, 2, 2, 2, 1)]
    found.show()
    assert "failed: inbox: other, round 1 of 2: no server" in capsys.readouterr().out


def test_what_only_one_side_has_is_shown_without_a_ratio() -> None:
    found = Comparison((THIS, OTHER))
    found.measure([INBOX], 1, lambda _, side: rate(1) if side is THIS else {})
    (row,) = found.rows()
    assert (row.this, row.other, row.ratio) == (1, None, None)


def test_counters_are_shown_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    found = Comparison((THIS, OTHER))
    found.count(
        lambda side: (
            {"answer": {"statements": 6}} if side is THIS else {"answer": {"statements": 8}}
        )
    )
    found.show()
    *people, program = capsys.readouterr().out.splitlines()
    assert [line.split() for line in people if "statements" in line] == [
        ["statements", "6", "8", "0.75"]
    ]
    assert json.loads(program)["counters"]["other"] == {"answer": {"statements": 8}}


def test_an_interruption_prints_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(found: Comparison, *_: object) -> None:
        found.readings[INBOX, 0, 0] = rate(7)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "this_side", lambda: THIS)
    monkeypatch.setattr(compare, "other_side", lambda _: OTHER)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(Comparison, "measure", measure)
    monkeypatch.setattr("sys.argv", ["compare", "HEAD", "--only", "inbox"])
    assert compare.main() == 130
    assert "stored /s" in capsys.readouterr().out


# ---------------------------------------------------------------------------- measurements


def test_either_gateway_meets_the_emulator_of_this_checkout() -> None:
    assert TELEGRAM.command(THIS) == [sys.executable, "-m", "bench.telegram", "answering"]
    assert TELEGRAM.command(OTHER) == [*TELEGRAM.command(THIS), "--tree", "/other"]


def test_what_imports_the_product_is_measured_by_each_side_itself() -> None:
    assert INBOX.command(OTHER) == ["/other/.venv/bin/python", "-m", "bench.inbox"]


def test_every_part_can_be_measured_quickly() -> None:
    found = list(measurements.measurements(measurements.PARTS, quick=True))
    assert {each.part for each in found} == set(measurements.PARTS)
    assert len({each.name for each in found}) == len(found)


def test_the_figures_of_a_benchmark_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Report("inbox", "about", 1, [Line("callers", (Figure("stored", [3.0], "/s"),))]).show()
    printed = capsys.readouterr().out
    monkeypatch.setattr(measurements, "output_of", lambda *_: printed)
    assert measurements.measure(INBOX, THIS) == rate(3)


def test_a_benchmark_that_prints_no_figures_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "output_of", lambda *_: "Good morning\n")
    with pytest.raises(MeasurementFailed, match="no figures"):
        measurements.measure(INBOX, THIS)


def test_a_measurement_during_which_the_clock_was_set_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.time

    def output_of(*_: object) -> str:
        monkeypatch.setattr(time, "time", lambda: now() - 60)
        return '{"lines": []}'

    monkeypatch.setattr(measurements, "output_of", output_of)
    with pytest.raises(MeasurementFailed, match=r"the clock was set by -60\.0 s"):
        measurements.measure(INBOX, THIS)


def test_a_checkout_without_a_ledger_is_counted_by_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write(ours / "tests/ledger/__init__.py", "")
    write(ours / "tests/ledger/__main__.py", LEDGER)
    write(theirs / "tests/__init__.py", "COST = 8")
    monkeypatch.setattr(measurements, "HERE", replace(HERE, folder=ours))
    side = Side("other", replace(HERE, folder=theirs))
    assert measurements.counters_of(side) == {"answer": {"statements": 8}}


LEDGER = """
import json, sys, tests
assert sys.argv[1:] == ["--json"]
print(json.dumps({"answer": {"statements": tests.COST}}, indent=1))
"""


def test_the_last_words_of_a_program_that_fails_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('first\\nno server')"]
    with pytest.raises(MeasurementFailed, match=r"^no server$"):
        measurements.output_of(command, tmp_path)


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(MeasurementFailed, match="longer than 0 s"):
        measurements.output_of(command, tmp_path, limit_s=0)


def test_a_program_ends_with_what_it_has_started(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    program = f"""
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("part").write_text(f"{{os.getpid()}} {{child.pid}}")
os.rename("part", {os.fspath(file)!r})
time.sleep(600)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=tmp_path, text=True, start_new_session=True) as process:
        wait_for(file.exists, "the process ids")
        measurements._end(process)
    for pid in file.read_text().split():
        wait_for(partial(is_gone, int(pid)), "the end of the process")


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# ---------------------------------------------------------------------------- checkouts

MAKEFILE = """
VENV ?= .venv
$(VENV)/.ready-bench:
\t@mkdir -p $(VENV)
\t@echo made >> $(VENV)/log
\t@touch $@
"""


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits, and a cache folder that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    write(folder / "Makefile", MAKEFILE)
    write(folder / "name", "old")
    git(folder, "init", "-q")
    commit(folder, "first")
    write(folder / "name", "new")
    commit(folder, "second")
    return folder


def git(folder: Path, *arguments: str) -> None:
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@localhost")
    subprocess.run(["git", "-C", folder, *person, *arguments], check=True)


def commit(folder: Path, words: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", words)


def test_another_commit_is_installed_once_outside_of_the_checkout(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENV", "elsewhere")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    first = trees.other_side("HEAD~1", repository)
    assert trees.other_side("HEAD~1", repository) == first
    folder = first.tree.folder
    assert trees.cache_folder() in folder.parents
    assert (folder / "name").read_text() == "old"
    assert (folder / ".venv/log").read_text() == "made\n"
    assert first.tree.python == folder / ".venv/bin/python"


def test_a_checkout_that_was_interrupted_is_made_again(repository: Path) -> None:
    sha = trees.other_side("HEAD", repository).tree.folder
    part = sha.with_suffix(".part")
    sha.rename(part)
    (part / "name").unlink()
    assert (trees.other_side("HEAD", repository).tree.folder / "name").read_text() == "new"


@pytest.mark.parametrize("name", ["nonsense", "--all", "", "HEAD:name"])
def test_a_wrong_commit_is_one_line(repository: Path, name: str) -> None:
    with pytest.raises(CannotCompare) as error:
        trees.other_side(name, repository)
    assert str(error.value) == f"there is no commit {name!r} in this repository"


def test_a_commit_that_cannot_be_installed_is_refused(repository: Path) -> None:
    write(repository / "Makefile", "all:\n")
    commit(repository, "broken")
    with pytest.raises(CannotCompare, match="environment of HEAD could not be installed"):
        trees.other_side("HEAD", repository)


def test_changes_of_this_checkout_are_marked(repository: Path) -> None:
    clean = trees.this_side(repository).name
    write(repository / "name", "newer")
    assert trees.this_side(repository).name == f"{clean}+"


def test_a_folder_without_git_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(CannotCompare, match="not a git repository"):
        trees.this_side(tmp_path)


def test_main_tells_a_wrong_commit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other_side(commit: str) -> Side:
        raise CannotCompare(f"there is no commit {commit!r} in this repository")

    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(compare, "this_side", lambda: THIS)
    monkeypatch.setattr(compare, "other_side", other_side)
    monkeypatch.setattr("sys.argv", ["compare", "nonsense"])
    with pytest.raises(SystemExit):
        compare.main()
    error = capsys.readouterr().err
    assert error == "error: there is no commit 'nonsense' in this repository\n"

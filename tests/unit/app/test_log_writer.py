"""Log lines where nothing can be written: nobody waits for it (SPEC OPS-5, SEC-2)."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from goclaw_py.app.log_ring import LogRing
from goclaw_py.app.log_writer import MOST_BYTES, LogWriter
from goclaw_py.app.logs import configure
from goclaw_py.config import Settings
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.observability.log_lines import LogFilter
from tests.support.process import ROOT, wait_for

LONG = "x" * 32_000
MANY = 3 * MOST_BYTES // len(LONG)
TOKEN = "123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"

lib = logging.getLogger("some.library")

pytestmark = [pytest.mark.usefixtures("log_as_before"), pytest.mark.real_time]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe that nobody reads."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_that_nobody_reads_blocks_no_caller_and_what_it_lacks_is_counted(
    pipe: Path,
) -> None:
    configure(Settings(), file=pipe, in_thread=True)
    for _ in range(MANY):
        lib.warning("it said", extra={"said": LONG})
    events = []
    with pipe.open("rb") as reader:
        for line in map(orjson.loads, reader):
            events.append(line["event"])
            if line["event"] == "log_lines_dropped":
                break
    assert line["lines"] > 0
    assert events.count("it said") + line["lines"] == MANY


def test_a_full_disk_is_reported_once_without_what_was_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ring = LogRing()
    configure(Settings(), file=Path("/dev/full"), secrets=[TOKEN], ring=ring, in_thread=True)
    for _ in range(3):
        lib.warning("it said: %s", TOKEN)
        logging.getLogger().handlers[0].flush()
    assert capfd.readouterr().err == "goclaw: not logged: OSError\n"
    kept = ring.tail(LogFilter(), limit=9).lines
    assert [line["event"] for line in kept] == [f"it said: {HIDDEN}"] * 3


class Disk:
    """Has room for some bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.text = b""

    def write(self, _: int, text: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "the disk is full")
        some = text[: self.room]
        self.room -= len(some)
        self.text += some
        return len(some)


@contextmanager
def writing(disk: Disk) -> Iterator[LogWriter]:
    with Path(os.devnull).open("wb") as nothing:
        writer = LogWriter(nothing.fileno(), disk.write)
        yield writer
        writer.close()


@pytest.mark.parametrize(
    ("room", "written"),
    [
        (0, b"three\n"),
        (4, b"one\nthree\n"),
        (6, b"one\ntw\nthree\n"),
    ],
)
def test_lines_after_a_full_disk_are_whole(
    room: int, written: bytes, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(room)
    with writing(disk) as writer:
        writer.add(b"one\n")
        writer.add(b"two\n")
        writer.flush()
        disk.room = 1_000
        writer.add(b"three\n")
        wait_for(lambda: caplog.messages, "the report")
    assert disk.text == written
    lost = 2 if room == 0 else 1
    (record,) = caplog.records
    assert (record.msg, vars(record)["lines"]) == ("log_lines_dropped", lost)
    assert capfd.readouterr().err == "goclaw: not logged: OSError\n"


PROGRAM = """
import logging, sys
from pathlib import Path
from goclaw_py.app.logs import configure
from goclaw_py.config import Settings
configure(Settings(), file=Path(sys.argv[1]), in_thread=True)
for number in range(int(sys.argv[2])):
    logging.getLogger("some.library").warning("it said", extra={"said": "x" * 1_000})
"""


def test_a_process_that_ends_has_written_all_lines(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "log"), "100"]
    subprocess.run(command, cwd=ROOT, check=True)
    assert len((tmp_path / "log").read_bytes().splitlines()) == 100


def test_a_process_ends_though_its_log_is_blocked(pipe: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(pipe), "100"], cwd=ROOT, check=True)

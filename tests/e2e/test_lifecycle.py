"""How a gateway starts and ends, and what stops a start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN = 1001


def test_a_second_gateway_in_the_same_folder_is_refused(place: Home) -> None:
    place.start()
    code, output = place.refused()
    assert code != 0
    assert "already" in output


def test_the_embedded_database_comes_back_after_kill_9(bot: Home, api: Control) -> None:
    """DB-4: work resumes, nothing is lost."""
    bot.start()
    api.say(ANN, "echo before")
    wait_for(lambda: any("before" in text for text in api.texts(ANN)), "the first answer")
    pid_file = bot.state / "postgres" / "data" / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
    api.say(ANN, "echo after")
    wait_for(lambda: any("after" in text for text in api.texts(ANN)), "an answer")
    assert len(api.texts(ANN)) == 2


def test_an_unreachable_database_is_said_and_nothing_is_confirmed(
    bot: Home, api: Control, tmp_path: Path
) -> None:
    """IO-1: what was not committed is not confirmed."""
    bot.env["GOCLAW_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    gateway = bot.start(ready=False)
    api.say(ANN, "echo lost?")
    wait_for(lambda: "the database does not answer" in gateway.output, "a word about the database")
    assert api.pending() == 1
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0


STUBBORN = """
import asyncio

async def run(request, emit):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
"""


def test_a_run_that_ignores_its_cancellation_does_not_keep_the_process(
    bot: Home, api: Control, tmp_path: Path
) -> None:
    """QUEUE-2, QUEUE-11."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    bot.env |= {
        "PYTHONPATH": str(tmp_path),
        "GOCLAW_AGENTS__MAIN__MODEL": "python:stubborn:run",
        "GOCLAW_RUNS__CANCEL_GRACE": "1s",
        "GOCLAW_SHUTDOWN__WAIT": "0s",
    }
    gateway = bot.start()
    api.say(ANN, "hello")
    wait_for(lambda: bot.rows("runs", "list"), "the run's begin")
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0
    bot.env["GOCLAW_AGENTS__MAIN__MODEL"] = "offline"
    bot.start()
    wait_for(lambda: api.texts(ANN), "the answer after the restart")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(place: Home, number: signal.Signals) -> None:
    """SIGHUP comes when the terminal is closed."""
    gateway = place.start()
    gateway.send(number)
    assert gateway.wait() == 0
    assert not (place.state / "postgres" / "data" / "postmaster.pid").exists()


def test_a_crash_of_the_process_says_where(place: Home) -> None:
    """As that of a library that gets no memory."""
    gateway = place.start()
    gateway.send(signal.SIGSEGV)
    assert gateway.wait() == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in gateway.output
    assert "asyncio" in gateway.output
    place.start()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:s3cret@one:5432,::1/db", "an IPv6 address is written in brackets"),
        ("postgresql://me:s3cret%zz@one/db", "% itself is written %25"),
        ("postgresql://me:s3cret@127.0.0.1:1/db?sslmode=verify-full", "root certificate file"),
        ("postgresql:///?service=prod", "there is no file"),
        ("postgresql://me:s3cret@127.0.0.1:1/db?sslcert=/etc/hosts", "certificate or key"),
    ],
)
def test_an_address_of_a_database_is_refused_in_the_same_words_everywhere(
    place: Home, url: str, words: str
) -> None:
    place.env["GOCLAW_DATABASE_URL"] = url
    for code, output in (
        place.goclaw("config", "check"), place.goclaw("doctor"), place.refused()
    ):  # fmt: skip
        assert code != 0
        assert words in output
        assert "s3cret" not in output
        assert "Traceback" not in output


def test_a_foreign_package_named_channels_is_named(place: Home, tmp_path: Path) -> None:
    (tmp_path / "other" / "channels").mkdir(parents=True)
    (tmp_path / "other" / "channels" / "__init__.py").write_text("")
    program = Path(sys.executable).with_name("goclaw")
    env = place.env | {"PYTHONPATH": str(tmp_path / "other")}
    for command in ("run", "doctor"):
        done = subprocess.run(
            [program, command], env=env, capture_output=True, text=True, timeout=30, check=False
        )
        output = done.stdout + done.stderr
        assert done.returncode == 1, output
        assert "another package named channels" in output
        assert "Traceback" not in output

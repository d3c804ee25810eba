"""Starting, and what stops a start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

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

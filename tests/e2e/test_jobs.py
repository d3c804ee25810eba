"""Jobs as people meet them: a real gateway process, a strict emulator, the offline agent."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.botapi.control import Control
from tests.botapi.views import Seen
from tests.support.process import Home, wait_for

ANN = 1001
BOB = 1002

UNTIL_THERE = """
import pathlib, sys, time
end = time.monotonic() + 60
while not pathlib.Path(sys.argv[1]).exists() and time.monotonic() < end:
    time.sleep(0.05)
print("there it is")
"""
"""A program that runs as long as a test wants: until a file exists."""


def answered(api: Control, words: str, chat: int = ANN) -> bool:
    return any(words in text for text in api.texts(chat))


def say(api: Control, text: str, words: str) -> None:
    """Say something and wait for words of the answer."""
    known = len(api.texts(ANN))
    api.say(ANN, text)
    wait_for(lambda: any(words in each for each in api.texts(ANN)[known:]), f"answer to {text!r}")


def cron(place: Home, *arguments: str) -> str:
    """What ``goclaw jobs`` prints."""
    code, output = place.goclaw("jobs", *arguments)
    assert code == 0, output
    return output


def log(place: Home, job: str) -> list[dict[str, Any]]:
    """What became of a job, the oldest first."""
    return place.rows("cron", "runs", "--job", job)[::-1]


def until_running(place: Home, job: str) -> dict[str, Any]:
    """Wait for a run that has begun; its row of the log."""

    def look() -> dict[str, Any] | None:
        rows = log(place, job)
        return rows[-1] if rows and rows[-1]["status"] == "running" and rows[-1]["runs"] else None

    return wait_for(look, f"a run of {job}")


def reminders(api: Control, words: str) -> list[Seen]:
    """The messages of the bot with these words that bear buttons."""
    return [seen for seen in api.view(ANN) if seen.mine and seen.buttons and words in seen.text]


def press(api: Control, seen: Seen, label: str, words: str) -> None:
    """Press a button below a reminder and wait for words of what follows."""
    (data,) = [button.data for row in seen.buttons for button in row if label in button.text]
    known = len(api.texts(ANN))
    api.press(ANN, seen.message_id, data)
    wait_for(lambda: any(words in text for text in api.texts(ANN)[known:]), f"what {label} answers")


def only_second(api: Control, first: Seen) -> list[Seen]:
    """The reminders with buttons, once the first one has none."""
    shown = reminders(api, "buy milk")
    return [] if first.message_id in {seen.message_id for seen in shown} else shown


@pytest.mark.smoke
def test_a_reminder_comes_once_to_its_chat_and_its_buttons_work(bot: Home, api: Control) -> None:
    """CRON-13, CMD-5: from the sentence in the chat to the snoozed job."""
    bot.start()
    say(api, "remind me in 3 seconds to buy milk", "I will remind you")
    (reminder,) = wait_for(lambda: reminders(api, "buy milk"), "the reminder")
    assert reminder.text == "⏰ Reminder: buy milk"
    labels = [button.text for row in reminder.buttons for button in row]
    assert [label.split(maxsplit=1)[1] for label in labels] == [
        "Done",
        "Again",
        "10 min",
        "1 hour",
        "Tomorrow",
    ]
    (first,) = log(bot, "buy-milk")
    assert (first["status"], first["attempts"], first["claims"]) == ("ok", 1, 1)

    press(api, reminder, "Again", "⏰ Reminder: buy milk")
    (second,) = wait_for(lambda: only_second(api, reminder), "the buttons of the first to go")
    press(api, second, "10 min", "again")
    wait_for(lambda: not reminders(api, "buy milk"), "the buttons of the second to go")
    say(api, "/jobs", "1. buy milk: once today")
    (snoozed,) = [job for job in bot.rows("cron", "list") if job["state"] == "active"]
    assert snoozed["spec"]["slug"].startswith("again-")
    assert api.texts(BOB) == []


def test_a_killed_run_runs_again_once_and_the_log_shows_it(
    bot: Home, api: Control, tmp_path: Path
) -> None:
    """CRON-5: ``kill -9`` counts a claim; an orderly end gives it back and counts none."""
    go = tmp_path / "go"
    gateway = bot.start()
    say(api, "echo hello", "hello")
    cron(
        bot,
        *("add", "tea", "--at", "in 1s", "--to", f"telegram:{ANN}", "--command", "--"),
        *(sys.executable, "-c", UNTIL_THERE, str(go)),
    )
    row = until_running(bot, "tea")
    gateway.kill()
    bot.env["GOCLAW_SHUTDOWN__WAIT"] = "0s"
    gateway = bot.start()
    again = wait_for(lambda: claimed_again(bot, row["job"]), "another run of it")
    assert again["id"] == row["id"]
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0
    go.touch()
    bot.start()
    wait_for(lambda: answered(api, "there it is"), "its result")
    (over,) = log(bot, row["job"])
    assert (over["id"], over["status"], over["claims"]) == (row["id"], "ok", 2)
    runs = {run["id"]: run["outcome"] for run in bot.rows("runs", "list")}
    assert [runs[run] for run in over["runs"]] == ["lost", "interrupted", "completed"]
    assert sum("there it is" in text for text in api.texts(ANN)) == 1
    # What runs once is deleted after that.
    wait_for(lambda: bot.rows("cron", "list", "--all") == [], "the job to be deleted")


def claimed_again(place: Home, job: str) -> dict[str, Any] | None:
    """The row of a job whose process died, when it runs once more."""
    (row,) = log(place, job)
    return row if (row["claims"], len(row["runs"])) == (2, 2) else None

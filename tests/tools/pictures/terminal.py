"""The recordings of the terminal: the first steps, and a day with a running gateway."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.process import ROOT, emulator, home, telegram, wait_for
from tests.tools.pictures import script
from tests.tools.pictures.animation import drawn
from tests.tools.pictures.recorder import Recorder
from tests.tools.pictures.stage import ANN, BOB, Stage, model

TOKEN = "Telegram bot token"
HOME = "/home/you/.goclaw"
"""What is shown in place of the temporary folder of a recording."""
CTRL_C, CTRL_D, ENTER, ESCAPE = "\x03", "\x04", "\r", "\x1b"


def first_steps(place: Path, file: Path) -> None:
    """``goclaw init`` with a bot and a model, and the pairing of its first person."""
    with emulator() as bot, model() as url:
        env = telegram(bot, OPENAI_BASE_URL=url, TZ="Europe/Berlin", NO_PROXY="127.0.0.1")
        del env["GOCLAW_TELEGRAM_TOKEN"]
        with home(place, **env) as own:
            terminal = Recorder(_short(own.env, place), shown={str(place): HOME})
            try:
                terminal.begins("goclaw init")
                for question, answer in (
                    (TOKEN, bot.token),
                    ("Model, such as", "openai:gpt-5-mini"),
                    ("API key of openai", "sk-loopback"),
                    ("Time zone", ""),
                    ("Who may talk", ""),
                ):
                    terminal.sees(question)
                    terminal.watches(0.8)
                    if answer in (bot.token, "sk-loopback"):
                        terminal.pastes(answer)
                    else:
                        terminal.types(answer)
                terminal.ends()
                terminal.pauses(2)
                own.start("--no-console")
                bot.say(ANN, script.TODAY, name="Ann")
                greeting = wait_for(lambda: bot.texts(ANN), "a pairing code")[0]
                code = re.findall(r"\b[A-Z2-9]{8}\b", greeting)[0]
                terminal.begins(f"goclaw people approve {code}")
                terminal.ends()
                terminal.pauses(1)
            finally:
                terminal.close()
            file.write_text(drawn(terminal, "The first steps with goclaw init"), "utf-8")


def daily(here: Stage, file: Path) -> None:
    """A chat, and the live view of a busy gateway."""
    place = here.folder
    terminal = Recorder(_short(here.dash.place.env, place), shown={str(place): HOME})
    try:
        terminal.begins("goclaw chat")
        terminal.sees("\u203a")
        terminal.watches(1)
        terminal.types(script.RELEASE)
        terminal.sees("before Thursday")
        terminal.watches(2)
        terminal.types(script.QUOTES)
        terminal.watches(5)
        terminal.presses(CTRL_C)
        terminal.sees("Stopped")
        terminal.watches(1.5)
        terminal.presses(CTRL_D)
        terminal.ends()
        here.bot.say(BOB, script.QUOTES, name="Bob")
        here.dash.say(script.TRIP, "travel")
        here.bot.say(ANN, script.DISK, name="Ann")
        time.sleep(1)
        terminal.begins("goclaw top")
        terminal.sees("a weekend")
        terminal.watches(4)
        terminal.presses("j")
        terminal.watches(1.5)
        terminal.presses(ENTER)
        terminal.watches(4)
        terminal.presses(ESCAPE)
        terminal.watches(2)
        terminal.presses("q")
        terminal.ends()
    finally:
        terminal.close()
    for session in (f"agent:main:telegram:direct:{BOB}", "agent:main:console:direct:travel"):
        here.dash.post(f"/api/sessions/{session}/stop")
    file.write_text(drawn(terminal, "A chat in the terminal, and goclaw top"), "utf-8")


def _short(env: Mapping[str, str], place: Path) -> dict[str, str]:
    """Return an environment for commands at a terminal, without settings of the tests."""
    return {**env, "HOME": str(place), "PYTHONPATH": str(ROOT), "PROMPT_TOOLKIT_NO_CPR": "1"}

"""What the model of the pictures answers: the product is real, only its model is scripted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.support.model_server_orders import Answer, Call, Finish

TODAY_FILE: Final = "- 09:30 dentist\n- 14:00 call with Lena about the offer\n- buy bread\n"
INVOICES_FILE: Final = "2031;Nordwind;420.00;open\n2032;Atelier Blum;180.00;paid\n"
NOTES_FILE: Final = "ship on Thursday; Lena writes the notes; no new features until then\n"

TODAY: Final = "What is on for today?"
REMIND: Final = "Remind me at six to water the plants"
WATER: Final = "Remind the user to water the plants"
TEA: Final = "Remind me in a minute to take the tea out"
TEA_IS_READY: Final = "Remind the user to take the tea out"
DUE: Final = "Is an invoice due soon?"
SAVE: Final = "Save what we decided as decisions.md"
LETTER: Final = "Draft a letter to the landlord about the heating"
INVOICES: Final = "Which invoices are still open?"
QUOTES: Final = "Compare the three quotes for the roof"
TRIP: Final = "Plan a weekend in Lisbon with two children"
PARTY: Final = "Who brings what to the garden party?"
BRIEFING: Final = "Summarise the mail of this morning"
RELEASE: Final = "Write the notes for release 2.4"
DISK: Final = "Why is the disk of the build server full?"

_WORDS_S: Final = 0.06
_SLOW_S: Final = 1.2


def _says(text: str, delay_s: float = _WORDS_S) -> Answer:
    return Answer(re.findall(r"\s*\S+\s*", text), delay_s=delay_s)


def _calls(tool: str, /, **arguments: object) -> Answer:
    call = Call(tool, json.dumps(arguments), f"call_{tool}")
    return Answer([], calls=[call], end=Finish.CALLS)


_LONG: Final = (
    "I read the three offers first. The cheapest one leaves out the scaffolding, which the other "
    "two include. The second one replaces all of the battens, the third only the damaged ones. "
    "All of them give ten years of warranty, but only the second one covers storm damage. "
) * 6

_PLAN: Final[dict[str, tuple[Answer, ...]]] = {
    TODAY: (
        _calls("read_file", path="today.md"),
        _says(
            "**Two appointments and one errand:**\n\n"
            "- **09:30** dentist\n- **14:00** call with Lena about the offer\n- buy bread\n\n"
            "Before the call you may want to read her mail of yesterday again.",
            0.12,
        ),
    ),
    REMIND: (
        _calls(
            "schedule_create",
            name="Water the plants",
            goal=WATER,
            cadence_type="cron",
            cadence_value="0 18 * * *",
        ),
        _says("Done: I will remind you every day at 18:00."),
    ),
    TEA_IS_READY: (_says("🫖 Your tea is ready: take it out."),),
    DUE: (
        _calls("read_file", path="invoices.csv"),
        _says("Invoice 2031 of Nordwind (420.00 €) is due tomorrow and still open."),
    ),
    WATER: (_says("🪴 Time to water the plants."),),
    SAVE: (
        _calls("write_file", path="decisions.md", text="# Decisions\n\n1. Ship on Thursday.\n"),
        _says("Saved."),
    ),
    LETTER: (
        _says(
            "Dear Mr Berger,\n\nsince Monday the heating in our flat has reached only 17 degrees, "
            "although all valves are open. We told the caretaker on Tuesday, and he confirmed it. "
            "Please let the supplier know today, and tell us when somebody comes. " + _LONG,
            0.25,
        ),
    ),
    INVOICES: (
        _calls("read_file", path="invoices.csv"),
        _says(
            "**One invoice is open:**\n\n"
            "| number | customer | amount |\n| --- | --- | ---: |\n"
            "| 2031 | Nordwind | 420.00 € |\n\n"
            "To see only the open ones, on your machine:\n\n"
            "```sh\ngrep ';open$' invoices.csv\n```\n",
        ),
    ),
    QUOTES: (_calls("read_file", path="notes.md"), _says(_LONG, _SLOW_S)),
    TRIP: (_says(_LONG.replace("offers", "guides"), _SLOW_S),),
    PARTY: (_says("Ann brings salad, Bob the drinks and Cleo a cake. Nobody has bread yet."),),
    BRIEFING: (_calls("list_files"), _says(_LONG, _SLOW_S)),
    RELEASE: (
        _calls("read_file", path="notes.md"),
        _says(
            "## Release 2.4\n\n"
            "- **Search** finds words inside of attachments.\n"
            "- Exports no longer stop at 10,000 rows.\n\n"
            "```console\n$ pip install --upgrade tool\n```\n\n"
            "Lena checks the notes before Thursday.",
        ),
    ),
    DISK: (_says("Old build images fill it: 61 GB of 80. `docker image prune` frees 48 GB."),),
}


def _in_a_minute() -> Answer:
    due = datetime.now(UTC) + timedelta(minutes=1)
    return _calls(
        "schedule_create",
        name="Tea",
        goal=TEA_IS_READY,
        cadence_type="once",
        cadence_value=due.isoformat(timespec="seconds"),
    )


def answers(order: str, results: Sequence[str], _messages: int) -> Answer:
    """Return the answer to the prompt that a text contains; the next one after a tool's result."""
    if TEA in order:
        return _says("Done: I will remind you in a minute.") if results else _in_a_minute()
    for prompt, steps in _PLAN.items():
        if prompt in order:
            return steps[min(1 if results else 0, len(steps) - 1)]
    return _says("OK.")

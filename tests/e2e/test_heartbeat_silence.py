"""Why a heart was silent: nothing to ask, somebody talks, nobody to tell."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import (
    ANN,
    SETTINGS,
    asked,
    begin,
    checklist,
    configure,
    ended,
    heartbeat_runs,
    outcome,
    run,
    say,
    start,
    stop,
    tell,
    workspace,
)
from tests.e2e.loopback_model import Model
from tests.support.process import ROOT, Home, wait_for

FULL = "say the disk is full"


def night(now: datetime) -> str:
    """An agent whose active hours are far from now."""
    begin_, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (6, 7))
    hours = f'{{ start = "{begin_}", end = "{end}", timezone = "UTC" }}'
    return f"\n[agents.night.heartbeat]\nactive_hours = {hours}\n"


def a_folder(file: Path) -> None:
    file.mkdir()


def ten_megabytes(file: Path) -> None:
    file.write_bytes(b"- look after me\n" * 655_360)


def a_binary(file: Path) -> None:
    file.write_bytes(b"\x7fELF\xff\xfe\x00")


def a_way_out(file: Path) -> None:
    outside = file.parents[1] / "outside.md"
    outside.write_text(FULL)
    file.symlink_to(outside)


UNREADABLE: dict[Callable[[Path], None], str] = {
    a_folder: "is a folder",
    ten_megabytes: "bytes are too many",
    a_binary: "is no text",
    a_way_out: "link",
    os.mkfifo: "a pipe",
}


def test_no_model_is_asked_where_there_is_nothing_to_ask(
    heart: Home, api: Control, model: Model
) -> None:
    """HB-2, HB-3, HB-9: a reason in the log, whatever HEARTBEAT.md is; chats are answered."""
    configure(heart, SETTINGS + night(datetime.now(UTC)))
    heart.env["GOCLAW_AGENTS__NIGHT__MODEL"] = "openai:a-model"
    gateway = start(heart, api)
    file = workspace(heart) / "HEARTBEAT.md"
    assert outcome(ended(heart, begin(heart))) == "skipped:no_file"
    example = (ROOT / "HEARTBEAT.md.example").read_text()
    for empty in ("", example, "# Checklist\n\n- [x] the disk\n- [ ]\n"):
        assert outcome(run(heart, empty)) == "skipped:empty"
    assert outcome(run(heart, "- every 2h: look out")) == "no_route"
    # Nobody has heard of that one. What is written down after its time waits for the next.
    before = datetime.now(UTC) - timedelta(hours=2)
    later = run(heart, f"- daily {before:%H:%M}: look out")
    assert outcome(later) == "skipped:nothing_due"
    requests = len(model.seen())
    for make, words in UNREADABLE.items():
        file.rmdir() if file.is_dir() else file.unlink()
        make(file)
        row = ended(heart, begin(heart))
        assert (outcome(row), row["started_at"]) == ("skipped:unreadable", None)
        assert words in row["detail"], row

    checklist(heart, FULL, "night")
    tell(heart, "it is dark", "night")
    (row,) = wait_for(lambda: over(heart, "night"), "the end of its heartbeat run")
    assert (outcome(row), row["kind"]) == ("skipped:quiet_hours", "event")
    assert len(model.seen()) == requests == 1
    say(api, "say hello", "hello")

    file.unlink()
    file = checklist(heart, "slow 20 0.05")
    heartbeat_run = begin(heart)
    wait_for(lambda: len(model.seen()) == 3, "the agent at work")
    file.unlink()
    assert outcome(ended(heart, heartbeat_run)) == "alerted"
    assert gateway.alive()
    assert "Traceback" not in gateway.output


def test_a_heartbeat_run_of_a_busy_agent_comes_when_the_agent_is_idle(
    heart: Home, api: Control, model: Model
) -> None:
    """HB-4, HB-13: after half a minute at most, with the event that it is for."""
    start(heart, api)
    checklist(heart, "say HEARTBEAT_OK")
    api.say(ANN, "slow 600 0.1")
    wait_for(model.seen, "the chat's run")
    tell(heart, "the build is red")
    deferred = wait_for(lambda: only(heart, "deferred"), "a heartbeat run that waits")
    assert "someone is talking to the agent" in heart.goclaw("heartbeat", "why")[1]
    stop(api)
    assert asked(model, "the build is red") == []
    row = ended(heart, deferred["id"])
    assert (outcome(row), row["kind"], row["attempts"]) == ("ok", "event", 1)
    assert [one["id"] for one in heartbeat_runs(heart)] == [deferred["id"]]
    assert len(asked(model, "the build is red")) == 1


def over(place: Home, agent: str) -> list[dict[str, Any]]:
    return [row for row in heartbeat_runs(place, agent) if row["finished_at"]]


def only(place: Home, status: str) -> dict[str, Any] | None:
    return next((row for row in heartbeat_runs(place) if row["status"] == status), None)

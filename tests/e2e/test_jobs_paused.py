"""A process that stands still for longer than its lease, in the middle of a job (SPEC CRON-5)."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from tests.botapi.control import Control
from tests.e2e.test_jobs import ANN, UNTIL_THERE
from tests.support.process import Home, home, telegram, wait_for

LEASE_S = 10.0
FENCED = "lease_lost"


def test_the_late_result_of_a_paused_process_is_refused(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """Who takes over runs it once more; the chat gets one result, and the log shows two claims."""
    go = tmp_path / "go"
    settings = telegram(
        api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open", GOCLAW_DATABASE_URL=postgres_url
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        first = one.start()
        api.say(ANN, "echo hello")
        api.wait_texts(ANN)
        program = (sys.executable, "-c", UNTIL_THERE, str(go))
        add(one, "tea", "--at", "in 1s", "--command", "--", *program)
        begun = wait_for(lambda: tea(one, claims=1), "the run")
        first.send(signal.SIGSTOP)
        try:
            two.start()
            taken = wait_for(lambda: tea(two, claims=2), "somebody to take it over")
            assert taken["id"] == begun["id"]
            assert taken["node"] != begun["node"]
            go.touch()
            wait_for(lambda: results(api), "the result of the second one")
        finally:
            # Its program has ended, too: what it says now is late.
            first.send(signal.SIGCONT)
        wait_for(lambda: FENCED in first.output, "the first one to learn of its death")

        # It is alive again and takes part, as another node.
        assert first.alive()
        add(one, "cake", "--every", "1h", "--", "echo cake")
        code, output = one.goclaw("cron", "run", "cake")
        assert code == 0, output
        wait_for(lambda: any("cake" in text for text in api.texts(ANN)), "a result of the first")
        row = tea(two, claims=2)
        assert row is not None
        assert (row["status"], row["delivery"]) == ("ok", "sent")
        outcomes = {run["id"]: run["outcome"] for run in two.rows("runs", "list")}
        assert [outcomes[run] for run in row["runs"]] == ["lost", "completed"]
        assert len(results(api)) == 1


def add(place: Home, slug: str, *arguments: str) -> None:
    """Add a job that tells its result to Ann."""
    code, output = place.goclaw("cron", "add", slug, "--to", f"telegram:{ANN}", *arguments)
    assert code == 0, output


def tea(place: Home, *, claims: int) -> dict[str, Any] | None:
    """The row of the job, if it was claimed so often and each time a run began."""
    rows = [row for row in place.rows("cron", "runs") if row["slug"] == "tea"]
    return next((r for r in rows if r["claims"] == claims == len(r["runs"])), None)


def results(api: Control) -> list[str]:
    return [text for text in api.texts(ANN) if "there it is" in text]

"""What operators do with a heartbeat at the command line beside a gateway."""

from __future__ import annotations

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import ANN, asked, heartbeat_runs, outcome, say, start
from tests.e2e.loopback_model import Model
from tests.support.process import Home, wait_for

ITEM = "- [ ] is the tea ready?"


def test_a_heartbeat_is_looked_after_at_the_command_line(
    heart: Home, api: Control, model: Model
) -> None:
    """OPS-1, HB-8, HB-9, HB-13: whatever was or was not said, it tells why."""

    def heartbeat(*arguments: str, code: int = 0) -> str:
        ended, output = heart.goclaw("heartbeat", *arguments)
        assert ended == code, output
        return output

    start(heart, api)
    assert "nowhere" in heartbeat("status")
    assert "there is no HEARTBEAT.md" in heartbeat("run", "--dry-run")
    code, output = heart.goclaw("event", "the build is red", "--now")
    assert code == 0, output
    wait_for(lambda: asked(model, "the build is red"), "a heartbeat run with the event")
    (row,) = wait_for(
        lambda: [one for one in heartbeat_runs(heart) if one["finished_at"]], "its end"
    )
    assert (outcome(row), row["kind"]) == ("no_route", "event")
    assert "no chat to send it to" in heartbeat("why")

    heartbeat("add", "is the tea ready?")
    dry = heartbeat("run", "--dry-run")
    assert "It would ask its agent" in dry
    assert ITEM in dry
    assert len(model.seen()) == 1
    for _ in range(2):
        assert "no_route" in heartbeat("run", code=1)
    assert "no_route" in heart.goclaw("status")[1]

    say(api, "say hello", "hello")
    assert f"to telegram:{ANN}" in heartbeat("status")
    assert "alerted" in heartbeat("run")
    # Nobody has heard of the event so far.
    first, second = api.texts(ANN)
    assert (first, second.splitlines()[0]) == ("hello", f"you said: {ITEM}")
    assert second.endswith("the build is red")
    assert "alerted" in heartbeat("run")
    assert api.texts(ANN)[2:] == [f"you said: {ITEM}"]
    assert "duplicate" in heartbeat("run")
    assert "no_route" not in heart.goclaw("status")[1]

    assert "turned off" in heartbeat("off")
    assert "skipped:disabled" in heartbeat("run", code=1)
    assert "on, every hour" in heartbeat("on")
    logged = [outcome(row) for row in heart.rows("heartbeat", "logs")]
    assert logged == ["skipped:disabled", "duplicate", "alerted", "alerted", *["no_route"] * 3]
    assert "duplicate" in heartbeat("logs", "--outcome", "duplicate")
    why = heartbeat("why").splitlines()
    assert len(why) == 2
    assert "the heartbeat is off" in why[0]
    assert "The next run is due" in why[1]
    assert len(api.texts(ANN)) == 3

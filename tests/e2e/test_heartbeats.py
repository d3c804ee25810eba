"""Heartbeats as people and operators meet them: silent when all is well, heard once when not."""

from __future__ import annotations

import json

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import (
    ANN,
    GROUP,
    TOPIC,
    a_day_later,
    asked,
    exactly,
    heartbeat_runs,
    leaked,
    outcome,
    run,
    say,
    shown,
    start,
)
from tests.e2e.loopback_model import Model
from tests.support.postgres import Server
from tests.support.process import Home, wait_for

ALL_IS_WELL = [
    "HEARTBEAT_OK",
    "**HEARTBEAT_OK**",
    "<b><i>HEARTBEAT_OK</i></b>",
    "```\nHEARTBEAT_OK\n```",
    "> `HEARTBEAT\\_OK`!",
    "HEARTBEAT_OK\n\nÂm thầm: tất cả đều ổn. 一切正常 🙂",
    f"{'Nothing to tell. ' * 15}HEARTBEAT_OK",
    "",
]
FULL = "say the disk is full"


def test_nothing_of_a_heartbeat_run_that_finds_all_well_comes_to_a_chat(
    heart: Home, api: Control, model: Model
) -> None:
    """HB-6: no message, no draft, no typing; and an alert comes without the token."""
    start(heart, api)
    say(api, "say hello", "hello")
    before = len(shown(api))
    for reply in ALL_IS_WELL:
        row = run(heart, exactly(reply))
        assert (outcome(row), row["reply"], row["delivery"]) == ("ok", reply, "")
    assert shown(api)[before:] == []
    assert len(model.seen()) == 1 + len(ALL_IS_WELL)

    long = ("The disk is full. " * 25).strip()
    row = run(heart, exactly(f"**HEARTBEAT_OK** {long}"))
    assert (outcome(row), row["delivery"]) == ("alerted", "sent")
    assert "HEARTBEAT_OK" in row["reply"]
    assert api.texts(ANN)[1:] == [long]
    assert [call.method for call in shown(api)[before:]] == ["sendMessage"]
    assert leaked(api) == []


def test_an_alert_comes_once_to_the_chat_and_topic_used_last(
    heart: Home, api: Control, model: Model, postgres_server: Server, postgres_url: str
) -> None:
    """HB-7, HB-8, AGENT-7: over a restart too, anew after 24 hours, and the chat remembers it."""

    def told() -> list[tuple[str, int | None]]:
        """What the group reads beside answers, and in which topic."""
        return [
            (seen.text, seen.thread)
            for seen in api.view(GROUP)
            if seen.mine and "you said" not in seen.text and seen.text != "hello all"
        ]

    gateway = start(heart, api)
    api.add_group(GROUP, "Family", topics=[TOPIC])
    say(api, "say hello", "hello")
    say(api, "say hello all", "hello all", chat_id=GROUP, thread=TOPIC)
    row = run(heart, FULL)
    assert (outcome(row), row["delivery"]) == ("alerted", "sent")
    assert told() == [("the disk is full", TOPIC)]
    for same in (FULL, exactly("  **the disk** is\n_full_")):
        assert outcome(run(heart, same)) == "duplicate"
    assert outcome(run(heart, "say the cat is out")) == "alerted"
    assert outcome(run(heart, FULL)) == "duplicate"

    say(api, "what did you mean?", "you said", chat_id=GROUP, thread=TOPIC)
    (known,) = asked(model, "what did you mean?")
    assert "the disk is full" in json.dumps(known[:-1])

    gateway.end()
    start(heart, api)
    assert outcome(run(heart, FULL)) == "duplicate"
    assert told() == [("the disk is full", TOPIC), ("the cat is out", TOPIC)]
    a_day_later(postgres_server, postgres_url)
    assert outcome(run(heart, FULL)) == "alerted"
    assert outcome(run(heart, FULL)) == "duplicate"
    assert told()[2:] == [("the disk is full", TOPIC)]

    assert api.texts(ANN) == ["hello"]
    say(api, "say here I am", "here I am")
    assert outcome(run(heart, FULL)) == "alerted"
    assert api.texts(ANN)[2:] == ["the disk is full"]
    assert len(told()) == 3


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
        assert "no route" in heartbeat("run", code=1)
    assert "has no chat for its alert" in heart.goclaw("status")[1]

    say(api, "say hello", "hello")
    assert "to Ann (" in heartbeat("status")
    assert "alerted" in heartbeat("run")
    # Nobody has heard of the event so far.
    first, second = api.texts(ANN)
    assert (first, second.splitlines()[0]) == ("hello", f"you said: {ITEM}")
    assert second.endswith("the build is red")
    assert "alerted" in heartbeat("run")
    assert api.texts(ANN)[2:] == [f"you said: {ITEM}"]
    assert "duplicate" in heartbeat("run")
    assert "has no chat for its alert" not in heart.goclaw("status")[1]

    assert "turned off" in heartbeat("off")
    assert "The heartbeat is off." in heartbeat("run", code=1)
    assert "on, every hour" in heartbeat("on")
    logged = [outcome(row) for row in heart.rows("heartbeat", "logs")]
    assert logged == ["duplicate", "alerted", "alerted", *["no_route"] * 3]
    assert "duplicate" in heartbeat("logs", "--outcome", "duplicate")
    why = heartbeat("why").splitlines()
    assert len(why) == 2
    assert "It repeated an alert" in why[0]
    assert "The next run is due" in why[1]
    assert len(api.texts(ANN)) == 3

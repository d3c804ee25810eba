"""Heartbeats as people meet them: silent when all is well, heard once when it is not."""

from __future__ import annotations

import json

import pytest

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import (
    ANN,
    GROUP,
    TOPIC,
    a_day_later,
    asked,
    exactly,
    leaked,
    outcome,
    run,
    say,
    shown,
    start,
)
from tests.e2e.loopback_model import Model
from tests.support.postgres import Server
from tests.support.process import Home

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


@pytest.mark.smoke
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

"""Topics that are closed, and albums, in real gateways over both libraries (SPEC CHAN-6, HB-7)."""

from __future__ import annotations

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import ANN, BEN, GROUP, TOPIC, outcome, run, say, start
from tests.support.process import Home, wait_for

FULL = "say the disk is full"


def heard(api: Control) -> list[tuple[int | None, str]]:
    """What the bot has said in the group, with its threads."""
    return [(one.thread, one.text) for one in api.view(GROUP) if one.mine]


def test_alerts_for_a_topic_that_is_closed_come_once_in_the_general_one(
    either_heart: Home, api: Control
) -> None:
    """And once in the chat before if that is closed too; over a restart, and until it is open."""
    api.add_group(GROUP, "Family")
    gateway = start(either_heart, api)
    say(api, "say hello", "hello", BEN)
    api.open_topic(GROUP, TOPIC, "Plans")
    say(api, "say hello", "hello", ANN, chat_id=GROUP, thread=TOPIC)
    api.close_topic(GROUP, TOPIC)
    assert outcome(run(either_heart, FULL)) == "alerted"
    note = "This was for the topic Plans in Family, which is closed."
    first = "you said: Ann (id 1001): say hello"
    told = [(TOPIC, first), (None, "the disk is full"), (None, note)]
    wait_for(lambda: heard(api) == told, "the alert and the note")
    gateway.end()

    start(either_heart, api)
    assert outcome(run(either_heart, FULL)) == "duplicate"
    assert outcome(run(either_heart, "say the cat is out")) == "alerted"
    assert heard(api) == [*told, (None, "the cat is out")]

    api.close_topic(GROUP, 1)
    api.wait_confirmed()
    assert outcome(run(either_heart, FULL)) == "duplicate"
    assert outcome(run(either_heart, "say the tea is cold")) == "alerted"
    assert api.texts(BEN)[1:] == ["the tea is cold"], "why it comes here was told before"

    api.reopen_topic(GROUP, TOPIC)
    api.wait_confirmed()
    assert outcome(run(either_heart, "say all is well again")) == "alerted"
    assert heard(api)[-1] == (TOPIC, "all is well again")

"""Topics that are closed, and albums, in real gateways over both libraries (SPEC CHAN-6, HB-7)."""

from __future__ import annotations

import json

from tests.botapi.control import Control
from tests.botapi.files import png
from tests.e2e.heartbeat_gateway import ANN, BEN, GROUP, TOPIC, outcome, run, say, start, workspace
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


def test_the_files_of_one_answer_are_one_album(either_heart: Home, api: Control) -> None:
    """One that is no picture does not keep the others back."""
    start(either_heart, api)
    folder = workspace(either_heart)
    for name in ("a.png", "b.png", "notes.txt"):
        (folder / name).write_bytes(png(20, 10))
    (folder / "broken.png").write_text("no picture")
    files = ["a.png", "notes.txt", "b.png"]
    calls = [["send_file", {"path": path}] for path in files]
    api.say(ANN, f"tools {json.dumps(calls)}")

    def sent() -> list[str]:
        return [one.file.kind.value for one in api.view(ANN) if one.mine and one.file]

    wait_for(lambda: sent() == ["photo", "photo", "document"], "the files")
    first, second, third = [one.file for one in api.view(ANN) if one.mine and one.file]
    assert first.album
    assert first.album == second.album
    assert not third.album
    assert api.counts()["sendMediaGroup"] == 1

    calls = [["send_file", {"path": path}] for path in ("a.png", "broken.png")]
    api.say(ANN, f"tools {json.dumps(calls)}")
    wait_for(lambda: sent()[3:] == ["photo", "document"], "both, one by one")

"""``tests/tools/pictures``: what it draws. That it runs is seen by running it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from tests.botapi.views import Button, Seen
from tests.tools.pictures import recorder as recording
from tests.tools.pictures import telegram
from tests.tools.pictures.animation import drawn
from tests.tools.pictures.recorder import Recorder

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setattr(recording, "TYPE_S", 0.0)
    made = Recorder({}, columns=40, rows=5, shown={"goclaw_py": "/shown"})
    yield made
    made.close()


def test_each_content_of_a_line_is_drawn_once_and_the_last_one_stays(recorder: Recorder) -> None:
    for text in ("one <b>", "\r\x1b[31mtwo\x1b[0m    ", "\rone <b>"):
        recorder._show(text)
        recorder.pauses(1)
    root = ET.fromstring(drawn(recorder, "A title"))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert sorted(texts) == ["one <b>", "two"]
    uses = [(use.get("href"), use.get("class")) for use in root.iter(f"{SVG}use")]
    assert [name for name, _ in uses] == ["#c0", "#c1", "#c0"]
    assert [look for _, look in uses] == ["s", "s", "s z"]


@pytest.mark.real_time
def test_a_command_is_recorded_and_folders_are_replaced(recorder: Recorder) -> None:
    recorder.begins("goclaw version")
    recorder.ends()
    command, answer, *_ = recorder.text.split("\n")
    assert command == "$ goclaw version"
    assert answer.startswith("/shown ")


def test_a_chat_is_drawn_with_its_buttons_and_says_what_it_is() -> None:
    seen = Seen(
        message_id=1, mine=True, text="a < b", html=None, entities=[], reply_to=None, thread=None,
        file=None, buttons=[[Button("Stop & go", "x")]], reactions=[], edited=False, preview=False,
        service=None,
    )  # fmt: skip
    page = telegram.page([seen], "Chat")
    assert "a &lt; b" in page
    assert "<span>Stop &amp; go</span>" in page
    assert "rendering of the messages" in page

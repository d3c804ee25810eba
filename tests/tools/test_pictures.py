"""``tests/tools/pictures``: what it draws. That it runs is seen by running it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import cast
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page

from tests.botapi.views import Button, Seen
from tests.tools.pictures import chat, telegram
from tests.tools.pictures import recorder as recording
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


def seen(number: int, text: str, *buttons: Button) -> Seen:
    return Seen(
        message_id=number, mine=True, text=text, html=None, entities=[], reply_to=None, thread=None,
        file=None, buttons=[buttons] if buttons else [], reactions=[], edited=False, preview=False,
        service=None,
    )  # fmt: skip


def test_a_chat_is_drawn_with_its_buttons_and_says_what_it_is() -> None:
    page = telegram.page([seen(1, "a < b", Button("Stop & go", "x"))], "Chat")
    assert "a &lt; b" in page
    assert "<span>Stop &amp; go</span>" in page
    assert "rendering of the messages" in page


def test_a_note_stands_below_its_message() -> None:
    page = telegram.page([seen(1, "one"), seen(2, "two")], "Chat", notes={1: "later"}, height=300)
    assert page.index("one") < page.index(">later<") < page.index("two")
    assert "height:300px" in page


class Browser:
    """Lays a page out as one message, of the length of the page."""

    def set_viewport_size(self, size: object) -> None: ...

    def set_content(self, html: str) -> None:
        self.words = re.findall(r'class="t">([^<]*)<', html)

    def evaluate(self, script: str, what: str) -> list[dict[str, object]]:
        line: dict[str, object]
        line = {"x": 1, "y": 9, "w": 30, "size": 15, "bold": False, "italic": False, "mono": False}
        shapes = [
            [{**line, "fill": "rgb(17, 17, 17)", "text": text}]
            for text in map(unescape, self.words)
        ]
        header = {"x": 0, "y": 0, "h": 40, "shapes": []}
        return [header, *({"x": 0, "y": 50, "h": 20, "shapes": each} for each in shapes)]


def test_a_recorded_chat_draws_each_message_once_and_ends_with_the_last_frame() -> None:
    frames = [(0.0, ["one"]), (1.0, ["one", "two < 3"])]
    recorder = chat.Recorder(list)
    for at_s, texts in frames:
        messages = tuple(seen(number, text) for number, text in enumerate(texts))
        recorder.frames.append(chat.Frame(at_s, messages, {}))
    recorder.length_s = 2.0
    root = ET.fromstring(chat.drawn(recorder, cast("Page", Browser())))
    assert ["".join(text.itertext()) for text in root.iter(f"{SVG}text")] == ["one", "two < 3"]
    shown = [group for group in root.iter(f"{SVG}g") if group.get("class")]
    assert [group.get("class") for group in shown] == ["s", "s z"]
    assert [len(list(group)) for group in shown] == [2, 3]

"""The recording of a chat in Telegram: what one person sees, as an SVG that plays by itself.

The messages are those that the gateway sent to the Bot API emulator, in the pace of their arrival.
The browser lays them out; the drawing has its lines of text, so that it stays sharp and small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict
from xml.sax.saxutils import escape

from playwright.sync_api import Page

from tests.botapi.views import Seen
from tests.tools.pictures import script, telegram
from tests.tools.pictures.animation import REST_S, STEP_S, keyframes
from tests.tools.pictures.stage import MIA, NAMES, Stage

TITLE: Final = (
    "A chat in Telegram: a growing answer, a reminder, /stop, and an alert of the heartbeat"
)
SIZE: Final = (420, 560)
PATIENCE_S: Final = 120.0
_READ_S: Final = 2.0
"""How long people need before they go on."""
_JS: Final = (Path(__file__).parent / "lines.js").read_text("utf-8")
_INK: Final = "rgb(17, 17, 17)"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the chat showed from ``at_s`` on; ``notes`` are those between its messages."""

    at_s: float
    messages: tuple[Seen, ...]
    notes: dict[int, str]


class Recorder:
    """A chat that is watched. ``frames`` is what it showed, ``length_s`` how long that takes."""

    def __init__(self, view: Callable[[], Sequence[Seen]]) -> None:
        self._view = view
        self.frames: list[Frame] = []
        self.length_s = 0.0
        self._notes: dict[int, str] = {}

    def sees(self, text: str) -> None:
        """Record until a message of the bot has this text."""
        begin = time.monotonic()
        while not any(text in each.text for each in self._view() if each.mine):
            assert time.monotonic() - begin < PATIENCE_S, f"{text!r}: {self.frames[-1]}"
            self.watches(STEP_S)

    def skips_to(self, text: str, note: str) -> None:
        """Wait for a message without recording the time, and say so by a note in front of it."""
        begin = time.monotonic()
        while not any(text in message.text for message in self._view() if message.mine):
            assert time.monotonic() - begin < PATIENCE_S, text
            time.sleep(STEP_S)
        self._notes[self.frames[-1].messages[-1].message_id] = note
        self.watches(STEP_S)

    def watches(self, seconds: float) -> None:
        """Record for a while."""
        end = time.monotonic() + seconds
        while True:
            messages = tuple(self._view())
            if not self.frames or self.frames[-1].messages != messages:
                self.frames.append(Frame(self.length_s, messages, dict(self._notes)))
            if time.monotonic() >= end:
                return
            time.sleep(STEP_S)
            # What did not change for longer is shortened: the first run of a gateway takes seconds.
            self.length_s = min(self.length_s + STEP_S, self.frames[-1].at_s + _READ_S)


def record(here: Stage) -> Recorder:
    """Let Mia ask, set a reminder, stop an answer, and get an alert."""
    bot, name = here.bot, NAMES[MIA]
    chat = Recorder(lambda: bot.view(MIA))

    def says(text: str) -> None:
        chat.watches(_READ_S)
        bot.say(MIA, text, name=name)

    bot.say(MIA, script.TODAY, name=name)
    chat.sees("yesterday again")
    says(script.TEA)
    chat.sees("I will remind you")
    chat.watches(_READ_S)
    chat.skips_to("🫖", "one minute later")
    says(script.LETTER)
    chat.sees("caretaker")
    says("/stop")
    chat.sees("topped")
    chat.watches(_READ_S)
    here.dash.idle()
    here.dash.client.put("/api/heartbeats/main/checklist", json={"text": f"- [ ] {script.DUE}\n"})
    here.dash.post("/api/heartbeats/main/run")
    chat.skips_to("Nordwind", "later, from the heartbeat")
    chat.watches(_READ_S)
    return chat


class _Shape(TypedDict, total=False):
    """A rectangle, or a line of text with its style; lengths in px."""

    x: float
    y: float
    w: float
    h: float
    r: float
    fill: str
    text: str
    size: float
    bold: bool
    italic: bool
    mono: bool


def drawn(recorder: Recorder, page: Page) -> str:
    """Return the SVG."""
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
    steps = round((recorder.length_s + REST_S) / STEP_S)
    begins = [round(frame.at_s / STEP_S) for frame in recorder.frames]
    contents: dict[str, int] = {}
    styles, groups = [_style(steps)], []
    for number, frame in enumerate(recorder.frames):
        end = [*begins, steps][number + 1]
        uses = ""
        for part in _parts(page, frame):
            content = "".join(map(_shape, part["shapes"]))
            place = contents.setdefault(content, len(contents))
            uses += f'<use href="#m{place}" x="{part["x"]:g}" y="{part["y"]:g}"/>'
        styles.append(keyframes(f"k{number}", begins[number], end, steps))
        last = " z" if end == steps else ""
        groups.append(f'<g class="s{last}" style="animation-name:k{number}">{uses}</g>\n')
    symbols = "".join(f'<g id="m{place}">{content}</g>\n' for content, place in contents.items())
    width, height = SIZE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<title>{escape(TITLE)}</title>\n'
        f"<style>{''.join(styles)}</style>\n<defs>{symbols}"
        '<clipPath id="edge"><rect width="100%" height="100%" rx="10"/></clipPath></defs>\n'
        f'<g clip-path="url(#edge)"><rect width="100%" height="100%" fill="{telegram.PAPER}"/>\n'
        f"{''.join(groups)}</g>\n"
        '<rect x="0.5" y="0.5" width="99.8%" height="99.8%" rx="10" fill="none" stroke="#aebcab"/>'
        "\n</svg>\n"
    )


def _style(steps: int) -> str:
    return (
        "text{white-space:pre;font-family:Arial,'Liberation Sans',Helvetica,sans-serif}"
        ".c{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        f".s{{opacity:0;animation:{steps * STEP_S:.1f}s step-end infinite}}.z{{opacity:1}}"
        "@media(prefers-reduced-motion){.s{animation:none}}"
    )


def _parts(page: Page, frame: Frame) -> list[Any]:
    """Return the messages that are in view, each with its place and its shapes; the header last."""
    page.set_content(telegram.page(frame.messages, "goclaw", notes=frame.notes, height=SIZE[1]))
    parts: list[Any] = page.evaluate(_JS, ".m, .note, header")
    return [*(part for part in parts[1:] if part["y"] + part["h"] > 0), parts[0]]


def _shape(shape: _Shape) -> str:
    x, y, width, fill = shape["x"], shape["y"], shape["w"], shape["fill"]
    if "text" not in shape:
        radius = f' rx="{shape["r"]:g}"' if shape["r"] else ""
        return (
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{shape["h"]:g}"{radius} '
            f'fill="{fill}"/>'
        )
    look = f' fill="{fill}"' if fill != _INK else ""
    look += ' class="c"' if shape["mono"] else ""
    look += ' font-weight="bold"' if shape["bold"] else ""
    look += ' font-style="italic"' if shape["italic"] else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{shape["size"]:g}" textLength="{width:g}"{look}>'
        f"{escape(shape['text'].rstrip())}</text>"
    )

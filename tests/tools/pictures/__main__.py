"""Make the pictures of README and guides in ``docs/pictures`` from the running product.

    python -m tests.tools.pictures [--only browser|terminal] [--to FOLDER]

The gateway, its database and the browser are real. The model is scripted, and the Bot API is the
emulator of the tests, so that nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import QUIET
from tests.tools import debian_tools
from tests.tools.debian_tools import FONTS
from tests.tools.pictures import chat, telegram, terminal
from tests.tools.pictures.stage import ANN, Stage, converse, fill, make_busy, stage

ROOT: Final = Path(__file__).resolve().parents[3]
PICTURES: Final = ROOT / "docs" / "pictures"
MOST_BYTES: Final = 300_000
_SIZE: Final = {"width": 1440, "height": 900}
_PHONE: Final = {"width": 390, "height": 800}
_SETTLE_MS: Final = 1_500
"""After this long the events of a page have come, and its plots are drawn."""

Colours = Literal["light", "dark"]
PAGES: Final[tuple[tuple[str, str, Colours], ...]] = (
    ("now-light", "/", "light"),
    ("now-dark", "/", "dark"),
    ("runs", "/runs", "light"),
    ("usage", "/usage?range=7d&by=agent", "light"),
    ("jobs", "/jobs", "light"),
    ("chat", "/chat?name=browser", "light"),
)
"""Name, address and colours of each picture of the dashboard."""
ON_THE_PHONE: Final[tuple[tuple[str, Colours], ...]] = (
    ("/", "light"),
    ("/runs", "dark"),
    ("/chat?name=browser", "light"),
)
"""What stands beside each other in the picture of a phone."""


_FONTS_CONF: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{folder}</dir>
{matches}
</fontconfig>
"""
_MATCH: Final = """\
  <match target="pattern">
    <test qual="first" name="family"><string>{family}</string></test>
    <edit name="family" mode="prepend_first" binding="strong"><string>Inter</string></edit>
  </match>
"""
"""The pages ask for the font of the system: a common one instead of that of this machine."""


@contextmanager
def _browser(work: Path) -> Iterator[Browser]:
    """Start the browser, with fonts that people have, and emojis, if this machine can get them."""
    fonts = work / "fonts"
    fonts.mkdir()
    if debian_tools.main(tools=FONTS) == 0:
        for font in FONTS:
            (fonts / font.name).symlink_to(debian_tools.folder(os.environ) / font.name)
    conf = work / "fonts.conf"
    usual = ("system-ui", "sans", "DejaVu Sans", "Bitstream Vera Sans")
    matches = "".join(_MATCH.format(family=family) for family in usual)
    conf.write_text(_FONTS_CONF.format(folder=fonts, matches=matches), "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=debian_tools.path_of("chromium"),
            args=list(QUIET),
            env={**os.environ, "FONTCONFIG_FILE": str(conf)},
        )
        try:
            yield browser
        finally:
            browser.close()


def _shot(here: Stage, browser: Browser, path: str, colours: Colours, **options: Any) -> bytes:
    with browser.new_context(
        base_url=here.dash.url, locale="en-GB", color_scheme=colours, **options
    ) as context:
        page = context.new_page()
        # The stream of events of a page never ends, so "networkidle" would not come.
        answer = page.goto(path, wait_until="load")
        assert answer is not None, f"no answer for {path}"
        assert answer.ok, f"{path}: status {answer.status}"
        page.wait_for_timeout(_SETTLE_MS)
        return page.screenshot()


def _dashboard(here: Stage, browser: Browser, folder: Path) -> None:
    for name, path, colours in PAGES:
        picture = _shot(here, browser, path, colours, viewport=_SIZE)
        (folder / f"{name}.png").write_bytes(picture)
    phones = [
        b64encode(_shot(here, browser, path, colours, viewport=_PHONE, is_mobile=True)).decode()
        for path, colours in ON_THE_PHONE
    ]
    shown = "".join(f'<img src="data:image/png;base64,{phone}">' for phone in phones)
    style = "body{margin:0;padding:16px;display:flex;gap:16px;background:#d9dee3}"
    style += "img{border-radius:16px}"
    width = 16 + len(phones) * (_PHONE["width"] + 16)
    page = browser.new_page(viewport={"width": width, "height": _PHONE["height"] + 32})
    page.set_content(f"<!doctype html><style>{style}</style>{shown}")
    page.evaluate("Promise.all([...document.images].map((image) => image.decode()))")
    page.screenshot(path=folder / "phone.png")
    page.close()


def _telegram(here: Stage, recorded: chat.Recorder, browser: Browser, folder: Path) -> None:
    with browser.new_context(viewport={"width": 440, "height": 600}) as context:
        page = context.new_page()
        (folder / "telegram.svg").write_text(chat.drawn(recorded, page), "utf-8")
        messages = here.bot.view(ANN)
        first_part = next(place for place, each in enumerate(messages) if "🫖" in each.text)
        parts = {"telegram-1": messages[: first_part + 1], "telegram-2": messages[first_part + 1 :]}
        for name, part in parts.items():
            page.set_content(telegram.page(part, "Telegram"))
            page.screenshot(path=folder / f"{name}.png", full_page=True)


def make(folder: Path, only: Sequence[str]) -> None:
    """Make the pictures in a folder; ``only`` these kinds, or all."""
    wanted = only or ("browser", "terminal")
    with tempfile.TemporaryDirectory(prefix="goclaw-pictures-") as work:
        if "terminal" in wanted:
            terminal.first_steps(Path(work) / "first", folder / "first-steps.svg")
        with stage(Path(work) / "stage") as here:
            if "terminal" in wanted:
                terminal.daily(here, folder / "terminal.svg")
            if "browser" in wanted:
                recorded = chat.record(here)
                converse(here)
                # Before the browser, which keeps the event loop of this thread.
                fill(here)
                with _browser(Path(work)) as browser:
                    _telegram(here, recorded, browser, folder)
                    make_busy(here)
                    _dashboard(here, browser, folder)


def main() -> int:
    """Make them; return 1 if one is too large."""
    parser = argparse.ArgumentParser(prog="pictures", description=__doc__)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--to", type=Path, default=PICTURES)
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    make(given.to, given.only)
    sizes = {path.name: path.stat().st_size for path in sorted(given.to.iterdir())}
    for name, size in sizes.items():
        print(f"{size:>9,}  {name}")
    print(f"{sum(sizes.values()):>9,}  in all, in {time.monotonic() - begin:.0f} s")
    if large := [name for name, size in sizes.items() if size > MOST_BYTES]:
        print(f"larger than {MOST_BYTES:,} bytes: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())

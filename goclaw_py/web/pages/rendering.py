"""Templates, and the display of values. The only module that uses ``jinja2``.

All values in templates are escaped, whatever people, names of jobs and models contain (SPEC SEC-1).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from goclaw_py.common import formatting
from goclaw_py.common.text import count, first_words
from goclaw_py.model.display_names import address, short_id
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.web.pages.markdown import html_of

NONE: Final = "\u2013"
"""A dash in place of a missing value."""

_DAY_S: Final = 86_400

NAVIGATION: Final = (
    ("/", "Now"),
    ("/runs", "Runs"),
    ("/timeline", "Timeline"),
    ("/sessions", "Sessions"),
    ("/jobs", "Jobs"),
    ("/heartbeats", "Heartbeats"),
    ("/deliveries", "Deliveries"),
    ("/approvals", "Approvals"),
    ("/chat", "Chat"),
    ("/people", "People"),
    ("/usage", "Usage"),
    ("/health", "Health"),
)
"""The pages in the order of the menu."""

_COMMAND: Final = re.compile(r"see: goclaw ([a-z]+)[\w -]*\Z")
_PAGES: Final = {
    "outbox": "/deliveries",
    "inbox": "/deliveries",
    "groups": "/people",
    "approvals": "/approvals",
    "cron": "/jobs",
    "heartbeat": "/heartbeats",
    "sessions": "/sessions",
}
"""The pages with the same contents as commands."""

Read = Callable[[OutboundMessage], str]


class Pages:
    """Renders templates of this package.

    Args:
        read: Returns the text of a message as people in its chat read it.
        signs_out: Whether the person has signed in, and can sign out.
        navigation: The pages in the menu.
    """

    def __init__(
        self,
        assets: Assets,
        *,
        read: Read,
        signs_out: bool,
        navigation: Sequence[tuple[str, str]] = NAVIGATION,
    ) -> None:
        self._templates = Environment(
            loader=PackageLoader(__package__, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(
            when=when,
            lasts=lasts,
            seconds=seconds,
            short=short_id,
            address=address,
            usd=usd,
            count=count,
            first_words=first_words,
            markdown=html_of,
            read=read,
            pages_of=pages_of,
        )
        self._templates.globals.update(
            navigation=navigation, assets=assets.version, signs_out=signs_out
        )

    def render(self, template: str, facts: Mapping[str, object]) -> str:
        """Fill a template; ``facts`` must contain every value that it uses."""
        return self._templates.get_template(template).render(facts)


class Assets:
    """Style, script and icon, read once; ``version`` changes with their contents."""

    TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

    def __init__(self) -> None:
        folder = files(__package__) / "static"
        self.contents = {
            each.name: each.read_bytes()
            for each in sorted(folder.iterdir(), key=lambda each: each.name)
            if each.name.rpartition(".")[2] in self.TYPES
        }
        digest = hashlib.sha256(b"\0".join(self.contents.values()))
        self.version = digest.hexdigest()[:12]

    def type_of(self, name: str) -> str:
        """Return the media type of a file."""
        return self.TYPES[name.rpartition(".")[2]]


def when(value: datetime | None, *, relative: bool = False) -> Markup:
    """Return a time; the browser shows it in its zone, with ``relative`` as an age."""
    if value is None:
        return Markup('<span class="none">{}</span>').format(NONE)
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}"{}>{}</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        Markup(" data-relative") if relative else "",
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
    )


def lasts(value: timedelta | None) -> str:
    """Return a duration in words."""
    return NONE if value is None else seconds(value.total_seconds())


def seconds(value: float | None) -> str:
    """Return a duration: ``0.42 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``, ``3 d 4 h``."""
    if value is None:
        return NONE
    if value < 10:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < _DAY_S:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // 3600} h"


def usd(value: Decimal | None) -> str:
    """Return an amount of US dollars; a dash if it is unknown."""
    return NONE if value is None else formatting.usd(value)


def pages_of(warning: str) -> list[tuple[str, str]]:
    """Return path and name of the page for the command at the end of a warning."""
    found = _COMMAND.search(warning)
    return [page for page in NAVIGATION if found and page[0] == _PAGES.get(found[1])]

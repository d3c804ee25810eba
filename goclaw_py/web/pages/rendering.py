"""Templates, and the display of values. The only module that uses ``jinja2``.

All values in templates are escaped, whatever people, names of jobs and models contain (SPEC SEC-1).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from jinja2 import BytecodeCache, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from goclaw_py import operations
from goclaw_py.core import text as formatting
from goclaw_py.core.actors import Actor, acting
from goclaw_py.core.display_names import address, sender_words, short_id
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import count, first_words
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.runs.timeline import outcome_meaning
from goclaw_py.records.tokens import SETTINGS_TOKEN_NAME
from goclaw_py.web.pages.chat.markdown import html_of
from goclaw_py.web.roles import may

NONE: Final = "\u2013"
"""A dash in place of a missing value."""

_END_OF_ISOLATE: Final = "\u2069"
_CLOSED_BY: Final = {
    **dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c"),
    **dict.fromkeys("\u2066\u2067\u2068", _END_OF_ISOLATE),
}
"""Marks that change the direction of what follows, with what ends each."""
_MARKS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_EXACT: Final = Markup(" data-exact")
_CLOCK: Final = Markup(" data-clock")
_DATED: Final = Markup(' data-clock="dated"')
_LASTING: Final = Markup(" data-lasting")


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu, or a tab. ``counted`` names the number that stands beside it."""

    address: str
    name: str
    icon: str = ""
    counted: str = ""


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """Entries of the menu under a common name."""

    name: str
    entries: tuple[MenuEntry, ...]


MENU: Final = (
    MenuGroup("", (MenuEntry("/chat", "Chat", "message-circle"),)),
    MenuGroup(
        "Overview",
        (MenuEntry("/", "Now", "layout-dashboard"), MenuEntry("/health", "Health", "activity")),
    ),
    MenuGroup(
        "Activity",
        (
            MenuEntry("/runs", "Runs", "play"),
            MenuEntry("/sessions", "Sessions", "messages-square"),
            MenuEntry("/deliveries", "Deliveries", "send", counted="failed"),
            MenuEntry("/logs", "Logs", "scroll-text"),
        ),
    ),
    MenuGroup(
        "Automation",
        (
            MenuEntry("/jobs", "Jobs", "calendar-clock"),
            MenuEntry("/heartbeats", "Heartbeats", "heart-pulse"),
            MenuEntry("/approvals", "Approvals", "shield-check", counted="approvals"),
        ),
    ),
    MenuGroup(
        "Admin",
        (
            MenuEntry("/people", "People", "users"),
            MenuEntry("/usage", "Usage", "chart-column"),
            MenuEntry("/settings", "Settings", "settings"),
        ),
    ),
)
"""The menu. Pages that are not in it are tabs of one that is."""

TABS: Final = (
    (MenuEntry("/runs", "List"), MenuEntry("/timeline", "Timeline")),
    (MenuEntry("/logs", "Log lines"), MenuEntry("/audit", "Audit log")),
    (
        MenuEntry("/people", "People"),
        MenuEntry("/sign-ins", "Sign-ins"),
        MenuEntry("/tokens", "API tokens"),
    ),
)
"""Pages that belong together: the first is in the menu."""

IN_MENU: Final = tuple((entry.address, entry.name) for group in MENU for entry in group.entries)
"""The pages of the menu: address, name."""

NAVIGATION: Final = (
    *IN_MENU,
    ("/timeline", "Timeline"),
    ("/audit", "Audit log"),
)
"""The pages that every gateway has: address, name."""

THEMES: Final = (
    ("", "Theme of the system", "sun-moon"),
    ("light", "Light theme", "sun"),
    ("dark", "Dark theme", "moon"),
)
"""The themes: value, name, icon."""

Read = Callable[[OutboundMessage], str]


class _Compiled(BytecodeCache):
    """The compiled templates of this process: operators and guests have a site each."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED: Final = _Compiled()


class Pages:
    """Renders templates of this package, and of the folders of ``operations``.

    Args:
        read: Returns the text of a message as people in its chat read it.
        signs_out: Whether the person has signed in, and can sign out.
        navigation: The menu.
        absent: Addresses of tabs that this gateway does not have.
    """

    def __init__(
        self,
        assets: Assets,
        *,
        read: Read,
        signs_out: bool,
        navigation: Sequence[MenuGroup] = MENU,
        absent: Sequence[str] = (),
    ) -> None:
        self.has_menu = bool(navigation)
        self._templates = Environment(
            loader=ChoiceLoader(
                [
                    PackageLoader(__package__, "templates"),
                    PackageLoader(operations.__name__, "."),
                ]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            bytecode_cache=_COMPILED,
            finalize=with_closed_marks,
        )
        self._templates.filters.update(
            when=when,
            lasts=lasts,
            second="{:%Y-%m-%d %H:%M:%S}".format,
            seconds=seconds,
            short=short_id,
            address=address,
            sender=sender_words,
            usd=usd,
            count=count,
            first_words=first_words,
            outcome=outcome_text,
            token_name=token_name,
            markdown=html_of,
            meaning=outcome_meaning,
            read=read,
            pretty=pretty,
            verbatim=escape,
        )
        self._templates.tests["opened_by"] = _is_opened_by
        tabs = [tuple(one for one in group if one.address not in absent) for group in TABS]
        of_path = {one.address: group for group in tabs for one in group if len(group) > 1}
        self._templates.globals.update(
            tabs_of=lambda path: of_path.get(path, ()),
            section_of=lambda path: dict(NAVIGATION).get(path, "") if navigation else "",
            parent_of=lambda path: of_path[path][0].address if path in of_path else "",
            navigation=navigation,
            themes=THEMES,
            assets=assets.version,
            icon=assets.icons.__getitem__,
            signs_out=signs_out,
        )

    def render(self, template: str, facts: Mapping[str, object]) -> str:
        """Fill a template; ``facts`` must contain every value that it uses."""
        return self._templates.get_template(template).render(facts, actor=acting())


def _is_opened_by(path: str, actor: Actor | None) -> bool:
    """Return whether a person may open a page."""
    return actor is None or actor.role is None or may(actor, "GET", path)


class Assets:
    """Style, scripts and icons, read once; ``version`` changes with their contents.

    The style is Pico in a layer, so that our rules win without being more specific, then ours. The
    icons are one file of symbols.
    """

    TYPES: Final = {
        "css": "text/css",
        "js": "text/javascript",
        "png": "image/png",
        "svg": "image/svg+xml",
        "webmanifest": "application/manifest+json",
    }

    def __init__(self) -> None:
        folder = files(__package__) / "static"
        vendor = folder / "vendor"
        self.contents = {
            each.name: each.read_bytes()
            for each in sorted(folder.iterdir(), key=_name)
            if each.name.rpartition(".")[2] in self.TYPES
        }
        pico = (vendor / "pico.min.css").read_bytes()
        self.contents["style.css"] = b"@layer pico{%s}\n%s" % (pico, self.contents["style.css"])
        symbols = (_symbol(each) for each in sorted((vendor / "icons").iterdir(), key=_name))
        self.contents["icons.svg"] = (
            '<svg xmlns="http://www.w3.org/2000/svg">' + "".join(symbols) + "</svg>"
        ).encode()
        digest = hashlib.sha256(b"\0".join(self.contents.values()))
        self.version = digest.hexdigest()[:12]
        use = Markup('<svg class="icon" aria-hidden="true"><use href="{}?v={}#{}"/></svg>')
        names = (icon.name.removesuffix(".svg") for icon in (vendor / "icons").iterdir())
        self.icons = {name: use.format("/static/icons.svg", self.version, name) for name in names}
        """The icons as HTML, by name. Beside each stand words, so readers of screens skip it."""

    def type_of(self, name: str) -> str:
        """Return the media type of a file."""
        return self.TYPES[name.rpartition(".")[2]]


def _name(file: Traversable) -> str:
    return file.name


def _symbol(icon: Traversable) -> str:
    """Return an icon as a symbol, which pages use by its name."""
    shapes = icon.read_text("utf-8").partition(">\n")[2].partition(">\n")[2].rpartition("</svg>")[0]
    return f'<symbol id="{icon.name.removesuffix(".svg")}" viewBox="0 0 24 24">{shapes}</symbol>'


def with_closed_marks(value: object) -> object:
    """Return a text in which marks of direction end, so that they turn nothing behind it.

    The end of an element does not always end them. A template writes what comes back in a form,
    or is compared, with the filter "verbatim".
    """
    # Called for every value on a page: HTML and words of our own are of other types.
    if type(value) is not str or value.isascii():
        return value
    ends: list[str] = []
    for mark in _MARKS.findall(value):
        if mark in _CLOSED_BY:
            ends.append(_CLOSED_BY[mark])
        elif mark in ends[-1:]:
            ends.pop()
        elif mark == _END_OF_ISOLATE and mark in ends:
            while ends.pop() != mark:
                pass
    return value + "".join(reversed(ends))


def when(
    value: datetime | None,
    *,
    exact: bool = False,
    clock: bool = False,
    dated: bool = False,
    lasting: bool = False,
) -> Markup:
    """Return a time. The browser shows it as an age, and on hover the exact time in its zone.

    With ``exact`` it shows both, with ``clock`` hour to second, for lists in which seconds matter,
    with ``dated`` that and always the day, and with ``lasting`` how long it is ago without that
    word: how long something has lasted.
    """
    if value is None:
        return Markup('<span class="none">{}</span>').format(NONE)
    utc = value.astimezone(UTC)
    kind = (
        _EXACT
        if exact
        else _DATED
        if dated
        else _CLOCK
        if clock
        else _LASTING
        if lasting
        else Markup()
    )
    return Markup('<time datetime="{}"{}>{}</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        kind,
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
    )


def token_name(name: str) -> str:
    """Return who uses a token; the one of the settings has no name for people."""
    return "token of the settings" if name == SETTINGS_TOKEN_NAME else name


def lasts(value: timedelta | None) -> str:
    """Return a duration in words."""
    return NONE if value is None else seconds(value.total_seconds())


def seconds(value: float | None) -> str:
    """Return a duration; a dash if it is unknown."""
    return NONE if value is None else duration(value)


def usd(value: Decimal | None, digits: int | None = None) -> str:
    """Return an amount of US dollars; a dash if it is unknown."""
    return NONE if value is None else formatting.usd(value, digits)


def pretty(text: str) -> str:
    """Return JSON with a line for each value; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text

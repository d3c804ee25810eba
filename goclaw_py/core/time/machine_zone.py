"""The time zone of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.time.zones import zone

_UTC: Final = "UTC"


def machine_zone(env: Mapping[str, str], folder: Path = Path("/etc")) -> str:
    """Return the IANA name of this machine's time zone, ``UTC`` if it cannot be found.

    It is taken from ``TZ``, then ``localtime``, then ``timezone`` in ``folder``.
    """
    for name in _named(env, folder):
        try:
            zone(name)
        except UnknownZone:
            continue
        return name
    return _UTC


def _named(env: Mapping[str, str], folder: Path) -> Iterator[str]:
    # TZ may be a file with a colon before it. Values like ``<+03>-3`` have no zone name.
    yield _name_in(env.get("TZ", "").strip().removeprefix(":"))
    link = folder / "localtime"
    if link.is_symlink():
        # The link itself first: its final target may have the name of another place.
        yield _name_in(str(link.readlink()))
        yield _name_in(str(link.resolve()))
    try:
        yield (folder / "timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return


def _name_in(path: str) -> str:
    name = path.rpartition("zoneinfo/")[2]
    return name.removeprefix("posix/").removeprefix("right/")

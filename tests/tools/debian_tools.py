"""Programs that tests need and no Python package brings: found, or taken from Debian.

``make tools`` calls it; what is there costs nothing. A program on ``PATH`` is taken as it is. Those
whose package would start a service are only taken out of it, into the user's cache: nothing is
installed, and nobody has to be root. Two calls at once are one: the second waits for the first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

APT_S: Final = 900.0
"""A guard against waiting for ever."""
_SHOWN_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class Tool:
    """A program. ``names`` are those by which it may be on ``PATH``, the usual one first.

    With ``inside`` its package is not installed: the program, or a library of that name, is taken
    out of it, from there; ``*`` stands for the machine's kind.
    """

    names: tuple[str, ...]
    package: str
    inside: str = ""

    @property
    def name(self) -> str:
        return self.names[0]


TOOLS: Final = (
    Tool(("chromium", "chromium-browser", "google-chrome"), "chromium"),
    Tool(("systemd-analyze",), "systemd"),
    Tool(("promtool",), "prometheus", inside="usr/bin/promtool"),
    Tool(("caddy",), "caddy", inside="usr/bin/caddy"),
    Tool(("pgbouncer",), "pgbouncer", inside="usr/sbin/pgbouncer"),
    # Of the libraries of pgbouncer the one that no other package brings.
    Tool(("libcares.so.2",), "libc-ares2", inside="usr/lib/*/libcares.so.2.*"),
    Tool(("libfaketime.so.1",), "libfaketime", inside="usr/lib/*/faketime/libfaketime.so.1"),
)


FONTS: Final = (
    Tool(
        ("NotoColorEmoji.ttf",),
        "fonts-noto-color-emoji",
        inside="usr/share/fonts/truetype/noto/NotoColorEmoji.ttf",
    ),
    *(
        Tool((name,), "fonts-liberation", inside=f"usr/share/fonts/truetype/liberation/{name}")
        for name in ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf")
    ),
    *(
        Tool((name,), "fonts-inter", inside=f"usr/share/fonts/opentype/inter/{name}")
        for name in ("Inter-Regular.otf", "Inter-SemiBold.otf", "Inter-Bold.otf")
    ),
)
"""The fonts of ``make screenshots``; tests do without."""


class Missing(Exception):
    """A program is not there; ``str()`` is one line that says what to do."""


def path_of(name: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where a program of ``TOOLS`` is. Raises ``Missing``."""
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    found = _find(tool, env)
    if found is None:
        raise Missing(f"{name} is not on this machine: `make tools` installs it")
    return found


def folder(env: Mapping[str, str]) -> Path:
    """Where the programs of unpacked packages are."""
    cache = env.get("XDG_CACHE_HOME", "")
    # The standard says that a relative one is to be ignored.
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "goclaw_py" / "tools"


def main(
    env: Mapping[str, str] = os.environ,
    *,
    tools: Sequence[Tool] = TOOLS,
    is_root: bool | None = None,
) -> int:
    """Install what is missing; 0 if everything is there at the end, else 1 and a line on stderr."""
    if not _missing(tools, env):
        return 0
    try:
        with _alone(folder(env)):
            _install(
                _missing(tools, env), env, is_root=os.geteuid() == 0 if is_root is None else is_root
            )
    except Missing as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    return 0


def _find(tool: Tool, env: Mapping[str, str]) -> Path | None:
    for name in tool.names:
        if found := shutil.which(name, path=env.get("PATH")):
            return Path(found)
    if tool.inside and (unpacked := folder(env) / tool.name).exists():
        return unpacked
    return None


def _missing(tools: Sequence[Tool], env: Mapping[str, str]) -> list[Tool]:
    return [tool for tool in tools if _find(tool, env) is None]


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(missing: Sequence[Tool], env: Mapping[str, str], *, is_root: bool) -> None:
    if not missing:
        return
    names = ", ".join(tool.name for tool in missing)
    if not all(shutil.which(needed, path=env.get("PATH")) for needed in ("apt-get", "dpkg-deb")):
        raise Missing(f"{names}: missing, and there is no apt-get here: put them on PATH yourself")
    print(f"installing {names} (once)", flush=True)
    apt = _Apt(env, may_update=is_root)
    for tool in missing:
        if tool.inside:
            _unpack(tool, apt, env)
    if whole := [tool.package for tool in missing if not tool.inside]:
        if not is_root:
            packages = " ".join(whole)
            raise Missing(f"{packages}: missing; install with: sudo apt-get install {packages}")
        apt.run("install", "-y", "--no-install-recommends", *whole)
    if left := [tool.name for tool in missing if _find(tool, env) is None]:
        raise Missing(f"{', '.join(left)}: the package was installed, but does not have it")


@dataclass(slots=True)
class _Apt:
    """``apt-get``; where it fails its lists are fetched anew, once: they may be old or missing."""

    env: Mapping[str, str]
    may_update: bool

    def run(self, *command: str, cwd: Path = Path("/")) -> None:
        """Run one command. Raises ``Missing`` with what it said last."""
        done = self._once(command, cwd)
        if done.returncode and self.may_update:
            self.may_update = False
            self._once(("update",), Path("/"))
            done = self._once(command, cwd)
        if done.returncode:
            said = " | ".join(done.stdout.strip().splitlines()[-_SHOWN_LINES:])
            raise Missing(f"apt-get {' '.join(command)} failed: {said}")

    def _once(self, command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", *command],
            cwd=cwd,
            env={**self.env, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=APT_S,
            check=False,
        )


def _unpack(tool: Tool, apt: _Apt, env: Mapping[str, str]) -> None:
    """Take the program out of its package; half of it is never in its place."""
    place = folder(env)
    with tempfile.TemporaryDirectory(prefix="new-", dir=place) as name:
        work = Path(name)
        apt.run("download", tool.package, cwd=work)
        (package,) = work.glob("*.deb")
        files = work / "files"
        subprocess.run(["dpkg-deb", "-x", package, files], env=dict(env), check=True)
        (found,) = files.glob(tool.inside)
        found.rename(place / tool.name)


if __name__ == "__main__":
    sys.exit(main())

"""What this checkout and another commit print: commands, help, API, pages and chats, compared.

Both play the same story in a gateway process on the embedded database, with the Bot API emulator;
ids, times and numbers are left out. What differs is printed; the exit code is 1 then.

    make golden WITH=<commit>          or, for the outputs of this checkout in a folder:
    python -m bench.golden --into <folder>
"""

from __future__ import annotations

import argparse
import difflib
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx

from bench.compare.trees import CannotCompare, other_side
from bench.golden.outputs import outputs, without_chance
from bench.golden.story import SETTINGS, Stage, play
from bench.telegram.gateways import HERE, Tree
from tests.support.process import emulator, home, telegram, wait_for

_SHOWN = 40
"""Lines of a difference."""


def record(tree: Tree) -> dict[str, str]:
    """Return all outputs of a tree, by name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-golden-") as folder,
        emulator() as api,
        home(
            Path(folder) / "home", **telegram(api, **SETTINGS, GOCLAW_WEB__PORT=str(port))
        ) as place,
    ):
        place.launch = tree.launch
        place.start()
        wait_for(lambda: httpx.get(f"{address}/readyz").status_code == 200, "a ready gateway")
        stage = Stage(place, api, tree)
        found = {"story": play(stage)}
        found |= outputs(stage, address)
        secrets = (folder, str(tree.folder), api.url, address, str(port))
        return {name: without_chance(text, *secrets) for name, text in found.items()}


def differences(this: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return what differs, for people."""
    found = []
    for name in sorted({*this, *other}):
        if name not in this or name not in other:
            found.append(f"only {'here' if name in this else 'there'}: {name}")
        elif this[name] != other[name]:
            lines = difflib.unified_diff(
                other[name].splitlines(), this[name].splitlines(), "there", "here", "", "", 1, ""
            )
            found.append("\n".join([f"== {name}", *[*lines][2 : 2 + _SHOWN]]))
    return found


def main() -> int:
    """Record, and compare or write."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=__doc__)
    parser.add_argument("commit", nargs="?", help="the other side")
    parser.add_argument("--into", type=Path, help="write the outputs of this checkout")
    arguments = parser.parse_args()
    try:
        other = other_side(arguments.commit).tree if arguments.commit else None
    except CannotCompare as error:
        print(error, file=sys.stderr)
        return 2
    this = record(HERE)
    if arguments.into:
        arguments.into.mkdir(parents=True, exist_ok=True)
        for name, text in this.items():
            (arguments.into / f"{name.replace('/', '_')}.txt").write_text(text)
    if other is None:
        print(f"{len(this)} outputs")
        return 0
    found = differences(this, record(other))
    print("\n".join([*found, f"{len(this)} outputs, {len(found)} of them differ"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

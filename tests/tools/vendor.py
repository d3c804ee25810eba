"""Fetch the files of others that the dashboard ships from npm, and check their digests.

``make vendor`` calls it. ``sources.toml`` says which package and version each comes from. To take a
newer version, change version and integrity there and call it with ``--new``: it then writes the
digests of the files instead of checking them. To add an icon, create an empty file with its name
and do the same.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "goclaw_py/web/pages/static/vendor"
SOURCES = FOLDER / "sources.toml"


def digests() -> dict[str, str]:
    """Return the SHA-256 of each file by its path in the folder, also of those not in the list."""
    files = sorted(one for one in FOLDER.rglob("*") if one.suffix in {".css", ".js", ".svg"})
    return {
        one.relative_to(FOLDER).as_posix(): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in files
    }


def fetch(package: dict[str, Any]) -> None:
    """Write the files of a package. Raises ``RuntimeError`` if the registry gives another one."""
    wanted = f"{package['name']}@{package['version']}"
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", "--silent", "--pack-destination", place, wanted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [archive] = Path(place).iterdir()
        content = archive.read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != package["integrity"]:
        raise RuntimeError(f"{wanted} has another digest: {found}")
    files = dict(package.get("files", {}))
    for source, folder in package.get("folder", {}).items():
        names = [one.name for one in (FOLDER / folder).iterdir()]
        files |= {f"{source}/{name}": f"{folder}/{name}" for name in names}
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for source, target in files.items():
            member = tar.extractfile(f"package/{source}")
            if member is None:
                raise RuntimeError(f"{wanted} has no {source}")
            (FOLDER / target).write_bytes(member.read())


def main() -> int:
    """Fetch all packages; return the exit code."""
    parser = argparse.ArgumentParser(prog="make vendor", description=__doc__)
    parser.add_argument("--new", action="store_true", help="write the digests, do not check them")
    given = parser.parse_args()
    text = SOURCES.read_text()
    for package in tomllib.loads(text)["package"]:
        fetch(package)
    if given.new:
        lines = "".join(f'"{path}" = "{digest}"\n' for path, digest in digests().items())
        SOURCES.write_text(re.sub(r"\[sha256\]\n.*", f"[sha256]\n{lines}", text, flags=re.DOTALL))
        return 0
    differ = digests().items() ^ tomllib.loads(text)["sha256"].items()
    for path, _ in sorted(differ):
        print(f"{path} differs from sources.toml", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

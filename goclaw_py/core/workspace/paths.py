"""The syntax of paths in a workspace (SPEC SEC-4).

Only the text is checked here. ``files`` checks for links when it opens a path, part by part.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_NAME_BYTES: Final = 255
"""The limit of common file systems."""
MAX_PATH_BYTES: Final = 1_000
MAX_DEPTH: Final = 32


class BadPath(ValueError):
    """A path is not valid in a workspace; ``str()`` says why, without repeating the path."""


def split_path(path: str, root: str = "") -> tuple[str, ...]:
    """Split a path into its names; none for the workspace itself.

    A path is relative to the workspace. An absolute path must begin with ``root``, the absolute
    path of the workspace, as agents get the paths of files that people sent. ``..`` is refused
    everywhere, because its meaning depends on links.

    Raises ``BadPath``.
    """
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in path):
        raise BadPath("must not have control characters or broken ones")
    if path.startswith("/"):
        base = root.rstrip("/")
        if not root or not f"{path}/".startswith(f"{base}/"):
            raise BadPath("must be relative to the workspace; this one is absolute")
        path = path[len(base) :]
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadPath("must not have .. in it")
    if len(parts) > MAX_DEPTH:
        raise BadPath(f"must not go deeper than {MAX_DEPTH} folders")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise BadPath(f"must not have a name of more than {MAX_NAME_BYTES} bytes")
    if sum(len(part.encode()) + 1 for part in parts) > MAX_PATH_BYTES:
        raise BadPath(f"must not be longer than {MAX_PATH_BYTES:,} bytes")
    return parts


def split_file_path(path: str, root: str = "") -> tuple[str, ...]:
    """Split the path of a file; never empty. Raises ``BadPath``."""
    parts = split_path(path, root)
    if not parts:
        raise BadPath("must name a file")
    if path.endswith(("/", "/.")):
        raise BadPath("must name a file; this one names a folder")
    return parts

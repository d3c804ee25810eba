"""Whatever a model asks for, nothing outside of the workspace is read or written (SPEC SEC-4).

Each example builds a small world: a workspace with files, folders and links to everywhere, and a
secret beside it. Then the file tools are called with hostile paths.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import ToolFailed
from tests.support.tools import ToolHost

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SECRET = "the secret of somebody else"
NAMES = ("a", "link", "notes", "deep", "secret")
HOSTILE = ("..", ".", "", "~", "a\\..", "..\u2215", "\u202e", "a\0", "\n", "%2e%2e", "x" * 300)

parts = st.sampled_from((*NAMES, *HOSTILE, "outside")) | st.text(max_size=4)
relative = st.lists(parts, min_size=1, max_size=5).map("/".join)
absolute = st.sampled_from(("{base}/outside/secret", "{base}/ws/../outside/secret", "/etc/passwd"))
prefixed = st.builds("{}/{}".format, st.sampled_from(("{base}/ws", "{base}", "")), relative)
usual = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
paths = usual | relative | absolute | prefixed

aims = st.sampled_from(
    [
        *("../outside", "../outside/secret", "../../outside/secret", "{base}/outside"),
        *("{base}/outside/secret", "..", ".", "/", "a", "link", "nowhere"),
    ]
)
places = st.sampled_from(("link", "notes/link", "notes/deep/link", "a"))
links = st.lists(st.tuples(places, aims), max_size=4)


class Inline(asyncio.SelectorEventLoop):
    """Does the work of threads itself: no waiting for them a hundred times."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


@contextmanager
def world(linked: list[tuple[str, str]]) -> Iterator[Path]:
    """A folder with a workspace in which there are links, and a secret beside it."""
    base = Path(tempfile.mkdtemp()).resolve()
    try:
        (base / "outside").mkdir()
        (base / "outside" / "secret").write_text(SECRET)
        notes = base / "ws" / "notes" / "deep"
        notes.mkdir(parents=True)
        for place, aim in linked:
            link = base / "ws" / place
            if not link.is_symlink():
                link.symlink_to(aim.format(base=base))
        if not (base / "ws" / "a").is_symlink():
            (base / "ws" / "a").write_text("mine, and old")
        yield base
    finally:
        shutil.rmtree(base)


def outside(base: Path) -> dict[str, str]:
    """All that is beside the workspace, with contents."""
    return {
        str(path.relative_to(base)): path.read_text() if path.is_file() else ""
        for path in base.rglob("*")
        if not path.is_relative_to(base / "ws")
    }


Use = Callable[[ToolHost, str], Awaitable[str]]

USES: tuple[Use, ...] = (
    lambda service, path: service.call("read_file", path=path),
    lambda service, path: service.call("list_files", path=path),
    lambda service, path: service.call("list_files", path=path, pattern="*"),
    lambda service, path: service.call("write_file", path=path, text="written by a model"),
    lambda service, path: service.call("edit_file", path=path, old="old", new="new"),
    lambda service, path: service.call("edit_file", path=path, old="secret", new="stolen"),
    lambda service, path: service.call("send_file", path=path),
)


async def tell(service: ToolHost, path: str) -> list[str]:
    """What the tools say about a path."""
    said = []
    for use in USES:
        try:
            said.append(await use(service, path))
        except ToolFailed as error:
            said.append(str(error))
    return said


@given(links, st.lists(paths, min_size=1, max_size=4))
def test_no_path_and_no_link_leads_out_of_a_workspace(
    linked: list[tuple[str, str]], asked: list[str]
) -> None:
    with world(linked) as base, asyncio.Runner(loop_factory=Inline) as runner:
        before = outside(base)
        service = ToolHost(base / "ws")
        through = [path for place, _ in linked for path in (place, f"{place}/secret")]
        for path in [*asked, *through]:
            said = runner.run(tell(service, path.replace("{base}", str(base))))
            assert all(SECRET not in text and "root:" not in text for text in said)
        assert outside(base) == before
        for file in service.attached:
            assert not any(
                part.is_symlink() for part in (Path(file.path), *Path(file.path).parents)
            )
            assert Path(file.path).resolve().is_relative_to((base / "ws").resolve())


@given(st.lists(st.text(st.characters(exclude_characters="/"), min_size=1, max_size=8), max_size=4))
def test_what_is_written_under_a_strange_name_is_read_under_the_same(names: list[str]) -> None:
    with world([]) as base, asyncio.Runner(loop_factory=Inline) as runner:
        service = ToolHost(base / "ws")
        path = "/".join(["new", *names])

        async def round_trip() -> None:
            try:
                await service.call("write_file", path=path, text="hello")
            except ToolFailed:
                return
            assert await service.call("read_file", path=path) == "hello"
            await service.call("edit_file", path=path, old="hello", new="good bye")
            assert await service.call("read_file", path=path) == "good bye"

        runner.run(round_trip())
        assert not list(base.rglob("*.goclaw-tmp"))

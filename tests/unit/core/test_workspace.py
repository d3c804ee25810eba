"""No path leads out of a workspace, whatever lies in it (SPEC SEC-4)."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from goclaw_py.core.workspace import files as module
from goclaw_py.core.workspace.files import EntryKind, NotThere, Workspace, WorkspaceError
from goclaw_py.core.workspace.paths import MAX_NAME_BYTES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a secret beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("the secret")
    root = tmp_path / "ws"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a").write_text("mine")
    return root


def outside(root: Path) -> dict[str, str]:
    """Everything beside the workspace."""
    folder = root.parent / "outside"
    return {file.name: file.read_text() for file in folder.iterdir()}


LINKS: dict[str, Callable[[Path], object]] = {
    "file": lambda root: (root / "link").symlink_to("../outside/secret"),
    "absolute": lambda root: (root / "link").symlink_to(root.parent / "outside" / "secret"),
    "inside": lambda root: (root / "link").symlink_to("notes/a"),
    "dangling": lambda root: (root / "link").symlink_to("../outside/new"),
    "itself": lambda root: (root / "link").symlink_to("link"),
    "folder": lambda root: (root / "link").symlink_to("../outside"),
}


@pytest.mark.parametrize("make", LINKS.values(), ids=LINKS)
def test_a_link_is_neither_read_nor_written(root: Path, make: Callable[[Path], object]) -> None:
    make(root)
    before = outside(root)
    workspace = Workspace(root)
    with pytest.raises(
        WorkspaceError, match="link: is a link, which is never followed, not a file"
    ):
        workspace.read("link", 100)
    with pytest.raises(
        WorkspaceError, match="link: is a link, which is never followed, not a file"
    ):
        workspace.write("link", b"x")
    assert (root / "link").is_symlink()
    assert outside(root) == before


@pytest.mark.parametrize("to", ["../outside", "notes", "..", ".", "link", "nowhere"])
def test_a_link_in_the_middle_of_a_path_is_not_followed(root: Path, to: str) -> None:
    (root / "link").symlink_to(to)
    before = outside(root)
    workspace = Workspace(root)
    for path in ("link/secret", "link/deep/new", "notes/../link/secret"):
        with pytest.raises(WorkspaceError):
            workspace.read(path, 100)
        with pytest.raises(WorkspaceError):
            workspace.write(path, b"x")
        with pytest.raises(WorkspaceError):
            list(workspace.entries(path))
    with pytest.raises(
        WorkspaceError, match="link is a link, which is never followed, not a folder"
    ):
        list(workspace.entries("link"))
    assert outside(root) == before


def test_the_workspace_itself_may_be_a_link(root: Path) -> None:
    """It is the operator who says where it is."""
    (root.parent / "link").symlink_to(root)
    assert Workspace(root.parent / "link").read("notes/a", 100).data == b"mine"


def test_a_link_that_appears_after_the_look_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = module._status

    def look_then_swap(name: str, folder: int) -> os.stat_result:
        info = look(name, folder)
        file = root / "notes" / "a"
        if not file.is_symlink():
            file.unlink()
            file.symlink_to("../../outside/secret")
        return info

    monkeypatch.setattr(module, "_status", look_then_swap)
    with pytest.raises(WorkspaceError, match="is a link"):
        Workspace(root).read("notes/a", 100)


def test_a_link_that_appears_before_the_rename_is_replaced_and_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def swap_then_rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        (root / "notes" / "a").unlink()
        (root / "notes" / "a").symlink_to("../../outside/secret")
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", swap_then_rename)
    Workspace(root).write("notes/a", b"new")
    assert outside(root) == {"secret": "the secret"}
    assert not (root / "notes" / "a").is_symlink()


def test_a_folder_that_becomes_a_link_again_and_again_never_leads_out(root: Path) -> None:
    """A stress test: somebody swaps the folder while files in it are read and written."""
    done = threading.Event()
    (root.parent / "outside" / "a").write_text("other secret")

    def swap() -> None:
        while not done.is_set():
            (root / "notes").rename(root / "kept")
            (root / "notes").symlink_to("../outside")
            (root / "notes").unlink()
            (root / "kept").rename(root / "notes")

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = set()
    workspace = Workspace(root)
    try:
        for _ in range(1500):
            try:
                content = workspace.read("notes/a", 100)
                read.add(content.data)
                # Not without ``expected``: it would make the folder while it is away.
                workspace.write("notes/a", b"mine", expected=content.version)
            except WorkspaceError:
                continue
    finally:
        done.set()
        swapping.join(30)
    assert read <= {b"mine"}
    assert outside(root) == {"secret": "the secret", "a": "other secret"}


@pytest.mark.parametrize("name", ["pipe", "socket"])
def test_pipes_and_sockets_are_refused_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    os.mkfifo(root / "pipe")
    # Addresses of sockets have no room for a long path.
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        workspace = Workspace(root)
        with pytest.raises(WorkspaceError, match="a device, a pipe or a socket, not a file"):
            workspace.read(name, 10)
        with pytest.raises(WorkspaceError, match="a device, a pipe or a socket, not a file"):
            workspace.write(name, b"x")
        with pytest.raises(WorkspaceError, match="a device, a pipe or a socket, not a folder"):
            list(workspace.entries(name))


def test_a_pipe_that_appears_after_the_look_does_not_block(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = module._status

    def look_then_swap(name: str, folder: int) -> os.stat_result:
        info = look(name, folder)
        (root / "notes" / "a").unlink()
        os.mkfifo(root / "notes" / "a")
        return info

    monkeypatch.setattr(module, "_status", look_then_swap)
    with pytest.raises(WorkspaceError, match="is not a file"):
        Workspace(root).read("notes/a", 100)


def test_a_device_is_not_even_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Path("/dev/zero").stat()
    monkeypatch.setattr(module, "_status", lambda name, folder: device)
    opened: list[str | Path] = []
    real_open = os.open

    def noting(path: str | Path, *more: int, dir_fd: int | None = None) -> int:
        opened.append(path)
        return real_open(path, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", noting)
    with pytest.raises(WorkspaceError, match="a device, a pipe or a socket"):
        Workspace(root).read("notes/a", 100)
    assert "a" not in opened


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "/etc/passwd", "notes/../../outside/secret", "a\0", "x" * 256, ".."],
)
def test_what_is_no_path_of_a_workspace_is_never_looked_for(root: Path, path: str) -> None:
    workspace = Workspace(root)
    with pytest.raises(WorkspaceError, match="must"):
        workspace.read(path, 100)
    with pytest.raises(WorkspaceError, match="must"):
        workspace.write(path, b"x")
    with pytest.raises(WorkspaceError, match="must"):
        list(workspace.entries(path))
    assert outside(root) == {"secret": "the secret"}


def test_what_is_not_there_is_an_error_of_its_own(root: Path) -> None:
    for path in ("b", "b/c", "notes/b"):
        with pytest.raises(NotThere, match=f"{path}: there is no such file or folder"):
            Workspace(root).read(path, 100)
    with pytest.raises(NotThere):
        Workspace(root / "gone").read("a", 100)


def test_an_error_shows_neither_a_long_path_nor_unprintable_characters(root: Path) -> None:
    with pytest.raises(WorkspaceError) as caught:
        Workspace(root).read("a\n" * 5000, 100)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_a_name_may_be_as_long_as_names_can_be(root: Path) -> None:
    name = "x" * MAX_NAME_BYTES
    assert Workspace(root).write(name, b"1") is False
    assert Workspace(root).write(name, b"2") is True
    assert Workspace(root).read(name, 10).data == b"2"


def test_a_file_that_grows_while_it_is_read_stays_within_the_limit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fstat, calls = os.fstat, 0

    def then_grow(number: int) -> os.stat_result:
        nonlocal calls
        calls += 1
        info = fstat(number)
        if calls == 2:  # the first call is about what kind of file it is
            with (root / "notes" / "a").open("a") as file:
                file.write("x" * 200)
        return info

    monkeypatch.setattr(os, "fstat", then_grow)
    with pytest.raises(WorkspaceError, match="has 101 bytes; the most that can be taken is 100"):
        Workspace(root).read("notes/a", 100)


def test_no_descriptor_stays_open(root: Path) -> None:
    folder = Path("/dev/fd")
    workspace = Workspace(root)
    (root / "link").symlink_to("notes")
    before = len(list(folder.iterdir()))
    for path in ("notes/a", "notes/b", "link/a", "notes", "deep/er/still"):
        for use in (
            lambda p: workspace.read(p, 10),
            lambda p: workspace.write(p, b"x"),
            lambda p: list(workspace.entries(p, deep=True)),
        ):
            try:
                use(path)
            except WorkspaceError:
                continue
    assert len(list(folder.iterdir())) == before


def test_a_listing_tells_what_is_there_and_goes_no_further_than_its_bound(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        (root / "notes" / f"{number}").touch()
    (root / "link").symlink_to("notes")
    (root / ".0123.goclaw-tmp").touch()
    found = {entry.path: entry.kind for entry in Workspace(root).entries(".")}
    assert found == {"link": EntryKind.LINK, "notes": EntryKind.FOLDER}
    assert len(list(Workspace(root).entries(".", deep=True))) == 13
    monkeypatch.setattr(module, "MAX_LOOKED_AT", 6)
    assert len(list(Workspace(root).entries(".", deep=True))) == 6


def test_a_folder_that_goes_away_while_all_is_listed_is_passed_over(root: Path) -> None:
    (root / "more").mkdir()
    (root / "more" / "b").touch()
    listing = Workspace(root).entries(".", deep=True)
    seen = [next(listing).path, next(listing).path]
    (root / "notes" / "a").unlink()
    (root / "notes").rmdir()
    assert [*seen, *(entry.path for entry in listing)] == ["more", "notes", "more/b"]

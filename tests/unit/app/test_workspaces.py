"""The agents' workspaces as a whole, out and in (SPEC DB-5, SEC-2, SEC-4)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from goclaw_py.app.backup.backup import _new_file
from goclaw_py.app.backup.workspaces import (
    LeftOut,
    Staging,
    files_in,
    filled,
    homes_of,
    is_storable,
    never_saved,
    workspaces,
)
from goclaw_py.config import Settings, load, secret_files, secrets_in
from goclaw_py.core.errors import BackupError
from goclaw_py.core.ids import AgentName


def settings_of(home: Path, text: str = "") -> Settings:
    home.mkdir(parents=True, exist_ok=True)
    (home / "goclaw.toml").write_text(text)
    return load(home / "goclaw.toml", {"GOCLAW_HOME": str(home)})


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def found(root: Path, leave_out: set[Path] | None = None) -> tuple[list[str], list[str]]:
    """The paths that go into a backup, and what is said of the others."""
    left_out = LeftOut()
    paths = []
    for path, file in files_in(root, leave_out or set(), left_out):
        assert file.read() == path.encode()
        paths.append(path)
    return paths, list(left_out.words())


def test_files_of_all_depths_are_found_but_no_half_written_ones(tmp_path: Path) -> None:
    write(tmp_path, "b", "a/x", "a/deep/er/y", ".hidden/z", ".0a.goclaw-tmp", ".0b.goclaw-tmp/n/y")
    assert found(tmp_path) == (["b", ".hidden/z", "a/x", "a/deep/er/y"], [])


def test_links_and_pipes_are_left_out_and_named(tmp_path: Path) -> None:
    """SEC-4: no link is followed, not even inside."""
    root = tmp_path / "w"
    write(root, "file")
    write(tmp_path / "outside", "secret")
    (root / "to-file").symlink_to(tmp_path / "outside" / "secret")
    (root / "to-folder").symlink_to(tmp_path / "outside")
    (root / "inside").symlink_to(root / "file")
    (root / "gone").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe")
    paths, said = found(root)
    assert paths == ["file"]
    assert sorted(said) == [
        f"left out, links: {root}/to-folder, {root}/gone, {root}/inside and 1 more",
        f"left out, not regular files: {root}/pipe",
    ]


def test_a_workspace_that_is_a_link_itself_is_the_operators_choice(tmp_path: Path) -> None:
    write(tmp_path / "real", "x")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "workspace").symlink_to(tmp_path / "real")
    roots = workspaces(settings_of(tmp_path / "home"))
    assert roots == {"main": tmp_path / "real"}
    assert found(roots[AgentName("main")])[0] == ["x"]


def test_state_settings_and_secrets_in_a_workspace_are_left_out(tmp_path: Path) -> None:
    """SEC-2: also where the whole home is a workspace."""
    settings = settings_of(
        tmp_path,
        "[agents.main]\nworkspace = '.'\napi_key_file = 'keys/model'\n"
        "[web]\ntoken_file = 'keys/web'\n"
        "[channels.telegram]\ntoken_file = 'keys/bot'\n"
        "[sources.g]\nkind = 'github'\nrepo = 'a/b'\ntoken_file = 'keys/github'\n",
    )
    write(tmp_path, "x", "state/postgres/PG_VERSION", "b.part")
    write(tmp_path / "keys", "model", "web", "bot", "github", "other")
    skipped = never_saved(settings, tmp_path / "b.part")
    saved = [path for path, _ in files_in(tmp_path, skipped, LeftOut())]
    assert saved == ["x", "keys/other"]


def test_a_folder_of_two_agents_is_saved_once(tmp_path: Path) -> None:
    text = "[agents.b]\nworkspace = 'shared'\n[agents.a]\nworkspace = 'shared'\n"
    text += "[agents.c]\nworkspace = 'shared/of-c'\n[agents.d]\nworkspace = 'nowhere'\n"
    (tmp_path / "shared" / "of-c").mkdir(parents=True)
    assert workspaces(settings_of(tmp_path, text)) == {"a": tmp_path / "shared"}


def test_wild_names_cannot_be_stored() -> None:
    for path in ("a\nb", "a/" * 32 + "b", "a\udcff"):
        assert not is_storable(path)


@pytest.mark.parametrize(("text", "keys"), [
    ("", []),
    ("[lanes]\nmain = 1\n[agents.main]\nbudget = {tokens = 5}", []),
    ("[channels.telegram]\ntoken = 'abc'", ["channels.telegram.token"]),
    ("[channels.telegram]\ntoken_file = 'abc'\ntoken_env = 'T'", []),
    ("[agents.main]\napi_key = ''", []),
    ("[agents.main]\nbase_url = 'http://localhost:1/v1'", []),
    ("[database]\nurl = 'postgresql://u:p@h/d'", ["database.url"]),
    ("[agents.a.mcp.s]\nenv = {X = 'y'}\nurl = 'https://h/?k=1'",
     ["agents.a.mcp.s.env.X", "agents.a.mcp.s.url"]),
    ("[agents.a]\nheaders = {Authorization = 'b'}", ["agents.a.headers.Authorization"]),
])  # fmt: skip
def test_secrets_that_stand_in_a_settings_file_are_found(text: str, keys: list[str]) -> None:
    """SEC-2."""
    assert sorted(secrets_in(text)) == keys


def test_files_with_secrets_are_known_for_all_accounts(tmp_path: Path) -> None:
    text = "[channels.telegram.accounts.two]\ntoken_file = 'two'\n"
    assert secret_files(settings_of(tmp_path, text)) == {tmp_path / "two"}


def staged(root: Path, *paths: str) -> Staging:
    staging = Staging({"main": root})
    staging.prepare()
    for path in paths:
        staging.add("main", path, 0o640, iter([path.encode()]))
    return staging


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_new_files_take_the_place_of_all_old_ones(tmp_path: Path) -> None:
    write(tmp_path, "old", "both", "folder/old")
    staging = staged(tmp_path, "both", "folder/new")
    assert tree(tmp_path) != ["both", "folder/new"]
    staging.swap()
    staging.clear()
    assert tree(tmp_path) == ["both", "folder/new"]
    assert (tmp_path / "both").stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.glob(".*")) == []


def test_what_was_swapped_can_be_undone(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write(root, "old", "both", "folder/old")
    (root / "both").write_text("mine")
    staging = staged(root, "both", "folder/new")
    staging.swap()
    staging.undo()
    assert tree(root) == ["both", "folder/old", "old"]
    assert (root / "both").read_text() == "mine"
    # Folders that were made for it are gone again.
    staged(tmp_path / "a" / "b", "x").undo()
    assert list(tmp_path.iterdir()) == [root]


def test_a_file_that_comes_twice_is_refused(tmp_path: Path) -> None:
    staging = staged(tmp_path, "x")
    for again in ("x", "x/y"):
        with pytest.raises(OSError, match=r"exists|directory"):
            staging.add("main", again, 0o600, iter([b"other"]))


@pytest.mark.parametrize(("text", "agents", "said"), [
    ("[agents.main]\nworkspace = '.'", ["main"], "contains .*: move it, or restore with --no"),
    ("[agents.main]\nworkspace = 'state'", ["main"], "contains .*state: move"),
    ("[agents.main]\nworkspace = 'w'\napi_key_file = 'w/key'", ["main"], "contains .*w/key"),
    ("[agents.a]\nworkspace = 'backups'", ["a"], "contains .*backups/b.tar.gz"),
    ("[agents.a]\nworkspace = 'w'\n[agents.b]\nworkspace = 'w/b'", ["a", "b"],
     "the workspace of b is inside that of a"),
    ("[agents.a]\nworkspace = 'w'\n[agents.b]\nworkspace = 'w'", ["a", "b"], "is inside that"),
])  # fmt: skip
def test_some_folders_are_not_replaced(
    tmp_path: Path, text: str, agents: list[str], said: str
) -> None:
    settings = settings_of(tmp_path, text)
    with pytest.raises(BackupError, match=said):
        homes_of(settings, agents, tmp_path / "backups" / "b.tar.gz")


def test_files_of_an_agent_without_settings_get_their_usual_place(tmp_path: Path) -> None:
    homes = homes_of(settings_of(tmp_path), ["main", "gone"], tmp_path / "b.tar.gz")
    assert homes == {"main": tmp_path / "workspace", "gone": tmp_path / "workspaces" / "gone"}


def test_a_folder_counts_as_filled_when_anything_but_our_leftovers_is_in_it(tmp_path: Path) -> None:
    homes = {"main": tmp_path / "w"}
    assert not filled(homes)
    write(tmp_path / "w", ".0a.goclaw-tmp/new/x")
    assert not filled(homes)
    write(tmp_path / "w", "x")
    assert filled(homes)


def test_a_file_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "b.tar.gz"
    with pytest.raises(BackupError) as refused, _new_file(file):
        pass
    assert str(refused.value) == f"{file}: cannot be written: No such file or directory"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_disk_that_is_full_is_told_and_nothing_is_left(tmp_path: Path, number: int) -> None:
    file = tmp_path / "b.tar.gz"
    with pytest.raises(BackupError, match="cannot be written"), _new_file(file):
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_system_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), _new_file(tmp_path / "b.tar.gz"):
        raise PermissionError(errno.EACCES, "denied", "/elsewhere")
    assert list(tmp_path.iterdir()) == []

"""``tests/tools/debian_tools.py``: quiet where nothing is missing, clear where something is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.places import ROOT
from tests.tools import debian_tools
from tests.tools.debian_tools import TOOLS, Missing, path_of

APT = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  *download*) echo x > "$PWD/package_1_all.deb" ;;
  *install*) for name in chromium systemd-analyze; do /bin/cp "$0" "{bin}/$name"; done ;;
esac
"""
UNPACKED = [tool for tool in TOOLS if tool.inside]
DPKG = f"""#!/bin/sh
for file in {" ".join(tool.inside.replace("*", "any") for tool in UNPACKED)}; do
  /bin/mkdir -p "$3/${{file%/*}}"
  echo "$file" > "$3/$file"
done
"""
DOWNLOADS = [f"download {tool.package}" for tool in UNPACKED]
REFUSES = """#!/bin/sh
echo "$@" >> "{log}"
echo "E: no such package"
exit 100
"""


class Machine:
    """A PATH with nothing but what a test puts there, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        self.cache = folder / "cache" / "goclaw_py" / "tools"
        self.env = {"PATH": str(self.bin), "XDG_CACHE_HOME": str(folder / "cache")}

    def add(self, name: str, script: str = "#!/bin/sh\n") -> None:
        path = self.bin / name
        path.write_text(script.format(log=self.log, bin=self.bin) if "{log}" in script else script)
        path.chmod(0o755)

    def add_debian(self, apt: str = APT) -> None:
        self.add("apt-get", apt)
        self.add("dpkg-deb", DPKG)

    @property
    def asked(self) -> list[str]:
        """What apt-get was asked for, without its options."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.partition("Timeout=600 ")[2] for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_where_everything_is_there_nothing_is_done_or_said(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_debian()
    for tool in TOOLS:
        machine.add(tool.name)
    assert debian_tools.main(machine.env) == 0
    assert capsys.readouterr() == ("", "")
    assert machine.asked == []
    assert not machine.cache.exists()


def test_root_gets_all_that_is_missing(machine: Machine) -> None:
    machine.add_debian()
    assert debian_tools.main(machine.env, is_root=True) == 0
    assert machine.asked == [*DOWNLOADS, "install -y --no-install-recommends chromium systemd"]
    assert path_of("promtool", machine.env) == machine.cache / "promtool"
    assert path_of("chromium", machine.env) == machine.bin / "chromium"
    assert debian_tools.main(machine.env, is_root=True) == 0
    assert len(machine.asked) == len(DOWNLOADS) + 1


def test_whoever_is_not_root_gets_what_needs_no_root_and_is_told_the_rest(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_debian()
    machine.add("chromium")
    assert debian_tools.main(machine.env, is_root=False) == 1
    said = capsys.readouterr().err
    assert said == "tools: systemd: missing; install with: sudo apt-get install systemd\n"
    assert path_of("caddy", machine.env) == machine.cache / "caddy"


def test_without_apt_it_is_said_in_one_line(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debian_tools.main(machine.env) == 1
    (line,) = capsys.readouterr().err.splitlines()
    names = ", ".join(tool.name for tool in TOOLS)
    assert line.startswith(f"tools: {names}: missing")


def test_old_lists_of_packages_are_fetched_again_once(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_debian(REFUSES)
    assert debian_tools.main(machine.env, is_root=True) == 1
    assert machine.asked == ["download prometheus", "update", "download prometheus"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "tools: apt-get download prometheus failed: E: no such package"
    assert sorted(path.name for path in machine.cache.iterdir()) == ["lock"]


def test_programs_are_looked_for_under_their_names_and_in_the_cache(machine: Machine) -> None:
    machine.add("google-chrome")
    assert path_of("chromium", machine.env).name == "google-chrome"
    with pytest.raises(Missing, match="promtool is not on this machine: `make tools`"):
        path_of("promtool", machine.env)
    assert debian_tools.folder({"XDG_CACHE_HOME": "here"}).is_absolute()
    assert os.fspath(debian_tools.folder({})).endswith("/.cache/goclaw_py/tools")


def test_two_runs_at_once_install_once(machine: Machine) -> None:
    machine.add_debian(APT.replace("case", "/bin/sleep 0.2\ncase", 1))
    machine.add("chromium")
    machine.add("systemd-analyze")
    command = [sys.executable, str(ROOT / "tests" / "tools" / "debian_tools.py")]
    both = [subprocess.Popen(command, env=machine.env, stdout=subprocess.DEVNULL) for _ in "ab"]
    assert [one.wait(60) for one in both] == [0, 0]
    assert sorted(machine.asked) == sorted(DOWNLOADS)

"""Programs that stand for ``systemctl`` and ``launchctl``: they note how they are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """\
#!/bin/sh
echo "{name} $*" >> "{folder}/calls"
if grep -qxF -- "{name} $*" "{folder}/fails" 2> /dev/null; then
  echo "refused: $*"
  exit 1
fi
test ! -e "{folder}/says" || cat "{folder}/says"
"""


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """One of them, in a folder that belongs first into ``PATH``."""

    name: str
    folder: Path

    @property
    def calls(self) -> list[str]:
        """How it was called so far."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def fails_at(self, *calls: str) -> None:
        """From now on these calls fail."""
        (self.folder / "fails").write_text("".join(f"{call}\n" for call in calls))

    def says(self, text: str) -> None:
        """From now on it prints this for every call."""
        (self.folder / "says").write_text(f"{text}\n")


def service_manager(folder: Path, name: str = "systemctl") -> ServiceManager:
    """Create the program."""
    folder.mkdir(parents=True)
    program = folder / name
    program.write_text(_PROGRAM.format(name=name, folder=folder))
    program.chmod(0o755)
    return ServiceManager(name, folder)

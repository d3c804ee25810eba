"""Lists what the settings of a backup use on this machine (SPEC DB-5, SEC-4).

Paths and programs in them were chosen by whoever made the backup, not by who restores it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.config import Settings, setting_values
from goclaw_py.core.ids import AgentName


@dataclass(frozen=True, slots=True)
class SettingsUse:
    """What settings use; the keys are the settings that name it.

    Args:
        paths: The folders and files that the gateway reads or writes.
        outside: Those of ``paths`` that are outside of the home, or hidden in it.
        programs: What agents run: programs, and functions in Python modules.
        tool_servers: The MCP servers: programs and addresses.
    """

    paths: dict[str, str]
    outside: tuple[str, ...]
    programs: dict[str, str]
    tool_servers: dict[str, str]


def settings_use(settings: Settings, *, files: bool = True) -> SettingsUse:
    """Return what settings use; without ``files`` only the paths for a restore of the database."""
    paths = {"state.folder": settings.state_folder} | (dict(_paths(settings)) if files else {})
    return SettingsUse(
        {key: str(path) for key, path in paths.items()},
        tuple(sorted({str(p) for p in paths.values() if not _is_inside(settings.home, p)})),
        dict(_programs(settings)),
        dict(_tool_servers(settings)),
    )


def _paths(settings: Settings) -> Iterator[tuple[str, Path]]:
    for name in settings.agents:
        yield f"agents.{name}.workspace", settings.workspace(AgentName(name))
    for path, value in setting_values(settings):
        # Options of channels are texts.
        is_path = isinstance(value, Path) or path[-1].endswith(("_file", "_folder"))
        if is_path and isinstance(value, str | Path) and path not in (("home",), ("file",)):
            yield ".".join(path), Path(value)


def _programs(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, agent in settings.agents.items():
        if agent.model == "command":
            yield f"agents.{name}.command.run", shlex.join(agent.command.run)
    for path, value in setting_values(settings):
        if path[-1] in ("model", "fallback") and str(value).startswith("python:"):
            yield ".".join(path), str(value)


def _tool_servers(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, agent in settings.agents.items():
        for server, given in agent.mcp.items():
            yield f"agents.{name}.mcp.{server}", given.url or shlex.join(given.command)


def _is_inside(home: Path, path: Path) -> bool:
    """Return whether a path is below the home, in no hidden folder such as ``.ssh``."""
    home, path = home.resolve(), path.resolve()
    return path.is_relative_to(home) and not any(
        part.startswith(".") for part in path.relative_to(home).parts
    )

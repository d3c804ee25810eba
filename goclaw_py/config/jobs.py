"""The scheduler profile with the settings applied, and the machine's zone (SPEC CRON-17)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from goclaw_py.common.timezones import zone
from goclaw_py.config.models import Settings
from goclaw_py.jobs.policy import PROFILES, Profile, policy_with
from goclaw_py.model.errors import UnknownZone
from goclaw_py.model.ids import CRON_LANE

UTC: Final = "UTC"


def job_profile(settings: Settings, env: Mapping[str, str] | None = None) -> Profile:
    """Return the selected profile with all settings applied, and the name of its zone.

    ``env`` is used to find the zone of the machine, for profiles that use it.
    """
    scheduler = settings.scheduler
    profile = PROFILES[scheduler.profile]
    named = scheduler.timezone or profile.zone
    prompt = scheduler.default_prompt
    return replace(
        profile,
        policy=policy_with(profile.policy, scheduler.overrides()),
        enabled=profile.enabled if scheduler.enabled is None else scheduler.enabled,
        zone=named or machine_zone(os.environ if env is None else env),
        default_prompt=profile.default_prompt if prompt is None else prompt.strip(),
        lane=settings.lanes[CRON_LANE].size,
        shutdown_wait_s=settings.shutdown.wait_s,
    )


def machine_zone(env: Mapping[str, str], folder: Path = Path("/etc")) -> str:
    """Return the IANA name of this machine's time zone, ``UTC`` if it cannot be found.

    It is taken from ``TZ``, then ``localtime``, then ``timezone`` in ``folder``.
    """
    for name in _named(env, folder):
        try:
            zone(name)
        except UnknownZone:
            continue
        return name
    return UTC


def _named(env: Mapping[str, str], folder: Path) -> Iterator[str]:
    # TZ may be a file with a colon before it. Values like ``<+03>-3`` have no zone name.
    yield _name_in(env.get("TZ", "").strip().removeprefix(":"))
    link = folder / "localtime"
    if link.is_symlink():
        # The link itself first: its final target may have the name of another place.
        yield _name_in(str(link.readlink()))
        yield _name_in(str(link.resolve()))
    try:
        yield (folder / "timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return


def _name_in(path: str) -> str:
    name = path.rpartition("zoneinfo/")[2]
    return name.removeprefix("posix/").removeprefix("right/")

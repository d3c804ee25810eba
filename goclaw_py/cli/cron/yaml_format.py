"""Reads herdctl files: YAML with agents, each with ``schedules``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from goclaw_py.jobs.models import Prompt
from goclaw_py.jobs.policy import PROFILES
from goclaw_py.jobs.schedule import Cron, Every, Schedule, parse_interval
from goclaw_py.model.errors import BadJob, JobError
from goclaw_py.model.ids import AgentName
from goclaw_py.ports.jobs import JobDraft

if TYPE_CHECKING:
    from goclaw_py.cli.cron.files import Definition, ImportProblem

MAX_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 50
_MAX_ALIASES: Final = 20
"""Aliases can refer to values with aliases, so a small file could expand without bounds."""


class BadYaml(Exception):
    """The YAML cannot be read; the message is one line for the user."""


def read_yaml(text: str) -> object:
    """Read one document. Raises ``BadYaml``, also if it would take too much memory."""
    import yaml  # noqa: PLC0415  (not needed for --help)

    try:
        depth = aliases = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if depth > _MAX_DEPTH or aliases > _MAX_ALIASES:
                raise BadYaml("the file is nested too deeply, or has too many aliases")
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise BadYaml(
            f"the file is not valid YAML: {error.problem or error.context}{where}"
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadYaml(f"the file is not valid YAML: {reason}") from error


def is_herdctl(document: object) -> bool:
    """Return whether a document has agents or schedules."""
    return isinstance(document, Mapping) and bool({"schedules", "agents"} & document.keys())


def herdctl_jobs(
    document: Mapping[object, object], file: str
) -> Iterator[Definition | ImportProblem]:
    """Yield the jobs of a document: that of one agent, or of a fleet with several agents."""
    for agent, schedules in _agents(document):
        if not isinstance(schedules, Mapping):
            yield _trouble(f"{file}: {agent}", BadJob("schedules", "must map names to schedules"))
            continue
        for name, schedule in schedules.items():
            where = f"{file}: {agent}/{name}"
            try:
                yield _definition(agent, str(name), schedule, where)
            except JobError as error:
                yield _trouble(where, error)


def _agents(document: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    """Yield agent names with their schedules, without agents defined in other files."""
    if "schedules" in document:
        yield _agent_name(document), document["schedules"] or {}
    agents = document.get("agents")
    if isinstance(agents, Mapping):
        agents = [
            {"name": name, **each} for name, each in agents.items() if isinstance(each, Mapping)
        ]
    for each in agents if isinstance(agents, list) else ():
        if isinstance(each, Mapping) and "schedules" in each:
            yield _agent_name(each), each["schedules"] or {}


def _agent_name(agent: Mapping[object, object]) -> str:
    return str(agent.get("name", "") or "main")


def _definition(agent: str, name: str, schedule: object, where: str) -> Definition:
    from goclaw_py.cli.cron.files import Definition  # noqa: PLC0415

    if not isinstance(schedule, Mapping):
        raise BadJob("schedule", "must have a type, and an interval or an expression")
    prompt = schedule.get("prompt")
    if prompt is None:
        prompt = PROFILES["herdctl"].default_prompt
    if not isinstance(prompt, str):
        raise BadJob("prompt", "must be a string")
    draft = JobDraft(
        schedule=_schedule(schedule),
        payload=Prompt(prompt),
        slug=_slug(f"{agent}-{name}"),
        name=f"{agent}/{name}",
        zone=_text(schedule, "timezone") or PROFILES["herdctl"].zone,
        agent=AgentName(agent),
        source=_source(schedule.get("work_source")),
    )
    enabled = schedule.get("enabled", True)
    return Definition(where, draft, paused=enabled is False)


def _schedule(given: Mapping[object, object]) -> Schedule:

    kind = given.get("type")
    if kind == "interval":
        return Every(parse_interval(_text(given, "interval")))
    if kind == "cron":
        return Cron(_text(given, "expression") or _text(given, "cron"))
    raise BadJob("type", "must be interval or cron; other types do not run at times")


def _source(given: object) -> str:
    """Return the name of a work source, given as a string or in its definition."""
    if isinstance(given, Mapping):
        given = given.get("name") or given.get("type")
    if given is not None and not isinstance(given, str):
        raise BadJob("work_source", "must be a name, or a definition with a name or type")
    return given or ""


def _text(given: Mapping[object, object], key: str) -> str:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise BadJob(key, "must be a string")
    return value or ""


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")[:64]


def _trouble(where: str, error: JobError) -> ImportProblem:
    from goclaw_py.cli.cron.files import ImportProblem  # noqa: PLC0415

    return ImportProblem(where, str(error))

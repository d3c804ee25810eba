"""Reads job definitions from files: JSON of ``jobs export``, caco folders, herdctl YAML.

Imported only by ``goclaw jobs import``.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Final

import orjson
import yaml

from goclaw_py.core.errors import BadInterval, BadJob, BadSchedule, JobError
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import JobDraft
from goclaw_py.schedule.jobs.job_json import spec_of
from goclaw_py.schedule.jobs.models import OPERATOR, Prompt, TargetKind
from goclaw_py.schedule.jobs.policy import PROFILES, JobPolicy, policy_with
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule, parse_interval, schedule_of

MAX_YAML_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 50
_MAX_ALIASES: Final = 20
"""Aliases can refer to values with aliases, so a small file could expand without bounds."""
MAX_JSON_BYTES: Final = 16 * 1024 * 1024
_DEFINITION: Final = "definition.json"
_LAST_RUN: Final = "last-run.json"
_CRONTAB: Final = re.compile(
    rb"^[ \t]*(?:@(?:reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)"
    rb"|[0-9*][0-9*,/-]*(?:[ \t]+[0-9A-Za-z*,/-]+){4})[ \t]+\S",
    re.MULTILINE,
)
_NO_CRONTABS: Final = (
    "this is a crontab, which import cannot read (it reads JSON of goclaw jobs export, caco "
    "folders and herdctl YAML). Add each line as a job: "
    'goclaw jobs add NAME --cron "0 9 * * *" --command -- PROGRAM'
)
_YAML: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Definition:
    """A job as defined in a file.

    Args:
        where: The file, and the position in it.
        draft: The job. If its first run is in the past, it is due immediately.
        paused: Whether the job is created paused.
        whole: The file defines every field; otherwise fields it leaves out stay unchanged.
    """

    where: str
    draft: JobDraft
    paused: bool = False
    whole: bool = False
    owner: Owner = OPERATOR
    maker: Maker = Maker.OPERATOR


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """A part of a file that cannot be imported, and the reason."""

    where: str
    why: str


class _Unreadable(Exception):
    """A file cannot be read; the message is one line for the user."""


def read_all(paths: Iterable[Path]) -> Iterator[Definition | ImportProblem]:
    """Yield the jobs in files and folders in a stable order, and the errors among them."""
    for path in paths:
        if path.is_dir():
            yield from _read_folder(path)
        else:
            yield from _read_file(path, alone=True)


def _read_folder(folder: Path) -> Iterator[Definition | ImportProblem]:
    """Read a folder and its direct subfolders, without state files and hidden ones."""
    found = 0
    for path in _files_of(folder):
        for each in _read_file(path, alone=False):
            found += 1
            yield each
    if not found:
        yield ImportProblem(str(folder), "the folder contains no job definitions")


def _files_of(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
        below = [
            sorted(entry.iterdir())
            for entry in entries
            if entry.is_dir() and not entry.name.startswith(".")
        ]
    except OSError:
        # The caller reports the folder, because it finds no jobs in it.
        return
    for path in [*entries, *(path for paths in below for path in paths)]:
        if path.is_file() and (path.name == _DEFINITION or path.suffix in _YAML):
            yield path


def _read_file(path: Path, *, alone: bool) -> Iterator[Definition | ImportProblem]:
    """Yield the jobs of a file. ``alone``: the user named it, so it must contain some."""
    try:
        if path.suffix in _YAML:
            yield from _read_herdctl(path, alone=alone)
        else:
            yield from _read_json(path)
    except (_Unreadable, JobError) as error:
        yield ImportProblem(str(path), str(error))


def _text_of(path: Path, most: int) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise _Unreadable(error.strerror or str(error)) from error
    if len(raw) > most:
        raise _Unreadable(f"the file is larger than {most // 1024} KiB")
    return raw.removeprefix(codecs.BOM_UTF8)


def _read_herdctl(path: Path, *, alone: bool) -> Iterator[Definition | ImportProblem]:
    try:
        text = _text_of(path, MAX_YAML_BYTES).decode()
    except UnicodeDecodeError as error:
        raise _Unreadable("the file is not valid UTF-8") from error
    document = read_yaml(text)
    found = 0
    if isinstance(document, Mapping) and {"schedules", "agents"} & document.keys():
        for each in _herdctl_jobs(document, str(path)):
            found += 1
            yield each
    if alone and not found:
        raise _Unreadable("the file contains no schedules")


def _json_of(path: Path) -> object:
    text = _text_of(path, MAX_JSON_BYTES)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if _CRONTAB.search(text):
            raise _Unreadable(_NO_CRONTABS) from error
        raise _Unreadable(f"the file is not valid JSON: {error}") from error


def _read_json(path: Path) -> Iterator[Definition | ImportProblem]:
    document = _json_of(path)
    if isinstance(document, list):
        for number, each in enumerate(document, 1):
            where = f"{path}: job {number}"
            try:
                yield _ours(_object(each, "job"), where)
            except JobError as error:
                yield ImportProblem(where, str(error))
        return
    given = _object(document, "file")
    yield _ours(given, str(path)) if "payload" in given else _cacos(given, path)


def _object(given: object, key: str) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        raise BadJob(key, "must be an object")
    return given


# ---------------------------------------------------------------------------- ours


def _ours(given: Mapping[str, object], where: str) -> Definition:
    """Read one job in the format of ``goclaw jobs export``."""
    owner, maker = given.get("owner", OPERATOR), given.get("maker", Maker.OPERATOR.value)
    if not isinstance(owner, str) or not owner or not owner.isprintable():
        raise BadJob("owner", "must be a string")
    if maker not in tuple(Maker):
        raise BadJob("maker", f"must be one of {', '.join(Maker)}")
    spec = spec_of(given)
    return Definition(
        where,
        JobDraft(**{field.name: getattr(spec, field.name) for field in fields(spec)}),
        paused=given.get("paused", False) is True,
        whole=True,
        owner=Owner(owner),
        maker=Maker(str(maker)),
    )


# ---------------------------------------------------------------------------- caco


def _cacos(given: Mapping[str, object], path: Path) -> Definition:
    """Read a job of caco: its definition, and its state from the file beside it."""
    if not isinstance(prompt := given.get("prompt"), str):
        raise BadJob("prompt", "is required")
    session = _object(given.get("sessionConfig") or {}, "sessionConfig")
    model = session.get("model") or ""
    if not isinstance(model, str):
        raise BadJob("model", "must be a string")
    slug = given.get("slug", path.parent.name)
    if not isinstance(slug, str) or not slug:
        raise BadJob("slug", "must be a string")
    schedule = _object(given.get("schedule"), "schedule")
    zone = schedule.get("timezone") or PROFILES["caco"].zone
    if not isinstance(zone, str):
        raise BadJob("timezone", "must be the name of a time zone, for example Europe/Berlin")
    draft = JobDraft(
        schedule=_schedule(schedule),
        payload=Prompt(prompt, model),
        slug=slug,
        zone=zone,
        # Its results are in its session, as in caco.
        target=TargetKind.NONE,
        policy={"session": "fresh" if session.get("persistSession") is False else "job"},
        next_run_at=_next_run(path.with_name(_LAST_RUN)),
    )
    return Definition(str(path), draft, paused=given.get("enabled") is False)


def _schedule(given: Mapping[str, object]) -> Schedule:
    match given.get("type"):
        case "cron" if isinstance(expression := given.get("expression"), str):
            return Cron(expression)
        case "interval" if "everyMs" in given:
            return Every(_interval(given["everyMs"], timedelta(milliseconds=1)))
        case "interval":
            return Every(_interval(given.get("intervalMinutes"), timedelta(minutes=1)))
        case "at" if isinstance(at := given.get("at"), str):
            return schedule_of({"kind": "at", "at": at})
    raise BadJob("schedule", "must have a type, and an expression, intervalMinutes or at")


def _interval(number: object, unit: timedelta) -> timedelta:
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        raise BadInterval("an interval must be a number")
    try:
        return number * unit
    except OverflowError as error:
        raise BadInterval(f"an interval of {number} is too long") from error


def _next_run(path: Path) -> datetime | None:
    """Return when the job was due next; None if the file is missing or does not say."""
    if not path.is_file():
        return None
    try:
        next_run = _object(_json_of(path), _LAST_RUN).get("nextRun")
        if next_run is None:
            return None
        found = schedule_of({"kind": "at", "at": next_run})
    except (_Unreadable, BadSchedule) as error:
        raise BadJob(_LAST_RUN, str(error)) from error
    assert isinstance(found, At)
    return found.at


# ---------------------------------------------------------------------------- herdctl


def read_yaml(text: str) -> object:
    """Read one document. Raises ``_Unreadable``, also if it would take too much memory."""
    try:
        depth = aliases = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if depth > _MAX_DEPTH or aliases > _MAX_ALIASES:
                raise _Unreadable("the file is nested too deeply, or has too many aliases")
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise _Unreadable(
            f"the file is not valid YAML: {error.problem or error.context}{where}"
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise _Unreadable(f"the file is not valid YAML: {reason}") from error


def _herdctl_jobs(
    document: Mapping[object, object], file: str
) -> Iterator[Definition | ImportProblem]:
    """Yield the jobs of a document: that of one agent, or of a fleet with several agents."""
    for each in _agents(document):
        agent, schedules = str(each.get("name", "") or "main"), each["schedules"] or {}
        try:
            if not isinstance(schedules, Mapping):
                raise BadJob("schedules", "must map names to schedules")
            policy = _max_per_agent(each, document)
        except JobError as error:
            yield ImportProblem(f"{file}: {agent}", str(error))
            continue
        for name, schedule in schedules.items():
            where = f"{file}: {agent}/{name}"
            try:
                yield _definition(agent, str(name), schedule, policy, where)
            except JobError as error:
                yield ImportProblem(where, str(error))


def _agents(document: Mapping[object, object]) -> Iterator[Mapping[object, object]]:
    """Yield the agents that have schedules, without agents defined in other files."""
    if "schedules" in document:
        yield document
    agents = document.get("agents")
    if isinstance(agents, Mapping):
        agents = [
            {"name": name, **each} for name, each in agents.items() if isinstance(each, Mapping)
        ]
    for each in agents if isinstance(agents, list) else ():
        if isinstance(each, Mapping) and "schedules" in each:
            yield each


def _max_per_agent(
    agent: Mapping[object, object], document: Mapping[object, object]
) -> dict[str, object]:
    """Return how many jobs of the agent may run at once, as a policy; {} if no file says it.

    Raises ``BadJob``. A fleet may say it for all of its agents.
    """
    for part, given in (("", agent), ("defaults.", document.get("defaults"))):
        instances = given.get("instances") if isinstance(given, Mapping) else None
        if instances is not None and not isinstance(instances, Mapping):
            raise BadJob(f"{part}instances", "must be a section, such as max_concurrent: 2")
        if instances is not None and (most := instances.get("max_concurrent")) is not None:
            try:
                policy_with(JobPolicy(), {"max_per_agent": most})
            except BadJob as error:
                raise BadJob(f"{part}instances.max_concurrent", error.allowed) from error
            return {"max_per_agent": most}
    return {}


def _definition(
    agent: str, name: str, schedule: object, policy: dict[str, object], where: str
) -> Definition:
    if not isinstance(schedule, Mapping):
        raise BadJob("schedule", "must have a type, and an interval or an expression")
    prompt = schedule.get("prompt")
    if prompt is None:
        prompt = PROFILES["herdctl"].default_prompt
    if not isinstance(prompt, str):
        raise BadJob("prompt", "must be a string")
    draft = JobDraft(
        schedule=_herdctl_schedule(schedule),
        payload=Prompt(prompt),
        slug=_slug(f"{agent}-{name}"),
        name=f"{agent}/{name}",
        zone=_text(schedule, "timezone") or PROFILES["herdctl"].zone,
        agent=AgentName(agent),
        source=_source(schedule.get("work_source")),
        policy=policy,
    )
    enabled = schedule.get("enabled", True)
    return Definition(where, draft, paused=enabled is False)


def _herdctl_schedule(given: Mapping[object, object]) -> Schedule:
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

"""Everything that people and programs can read of a gateway, by name, without what is by chance."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx

from bench.golden.story import ANN, BOB, Stage

_LISTS: Final = (
    "status", "lanes", "nodes list", "why", "sessions list", "agents", "models", "channels",
    "runs list", "approvals list", "approvals grants", "usage", "inbox list", "outbox list",
    "cron list", "cron runs", "cron show news", "cron show weekly", "cron next", "heartbeat status",
    "heartbeat show", "heartbeat logs", "heartbeat why", "heartbeat events", "pairing list",
    "pairing people", "groups list", "web list", "web sign-ins", "config show", "config check",
    "config history", "doctor", "version", f"queue telegram:{ANN}", f"sessions show telegram:{ANN}",
    f"why telegram:{ANN}", "simulate --days 1",
)  # fmt: skip
_COMMAND: Final = re.compile(r"^  ([a-z][a-z-]*)(?:  |$)", re.MULTILINE)
_LINK: Final = re.compile(r'\bhref="(/[^"#]*)"')
_MOST_PAGES: Final = 300
_KEYS: Final = ("id", "key", "slug", "name", "agent")
_FIRST: Final = "/"

# By chance, or by the clock: the order matters.
_CHANCE: Final = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"\?v=[\w-]+", "?v"),
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"(?<![\w.])(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{6,}(?:-[0-9a-f]{2,})*\b", "ID"),
        (r"(?:\b|(?<=\\n))[A-Z2-9]{4}-?[A-Z2-9]{4}\b", "CODE"),
        (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b", "DAY"),
        (r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b", "MONTH"),
        (r"\b(?:today|tomorrow|yesterday)\b", "DAY"),
        (r"\d+(?:[.,:]\d+)*", "N"),
        (r"(?:N\s?(?:h|min|m|s|ms|MB|KB|B|d|days?|hours?|minutes?|seconds?)?\s*)+(?!\w)", "N "),
        (r"[ \t─]{2,}", "  "),
    )
)


def without_chance(text: str, *secrets: str) -> str:
    """Return a text without ids, times, numbers, and the width of columns."""
    for secret in secrets:
        text = text.replace(secret, "PLACE")
    for pattern, to in _CHANCE:
        text = pattern.sub(to, text)
    return text


def outputs(stage: Stage, address: str) -> Iterator[tuple[str, str]]:
    """Return names and contents of all outputs."""
    with ThreadPoolExecutor(2) as pool:
        commands = [*_LISTS, *(f"{command} --json" for command in _LISTS)]
        for command, printed in zip(
            commands,
            pool.map(lambda command: stage.goclaw(*command.split()), commands),
            strict=True,
        ):
            yield f"command {command}", printed
    yield from _helps(stage)
    with httpx.Client(base_url=address, timeout=60) as client:
        yield from _answers(client)
        yield from _pages(client)
    for chat in (ANN, BOB):
        yield f"chat {chat}", "\n\n".join(map(str, stage.api.view(chat)))


def _helps(stage: Stage) -> Iterator[tuple[str, str]]:
    """Return the help of all commands."""
    waiting: deque[tuple[str, ...]] = deque([()])
    while waiting:
        command = waiting.popleft()
        printed = stage.goclaw(*command, "--help")
        yield " ".join(("help", *command)), printed
        _, heading, listed = printed.partition("\nCommands:\n")
        if heading:
            waiting += [(*command, name) for name in _COMMAND.findall(listed)]


def _answers(client: httpx.Client) -> Iterator[tuple[str, str]]:
    """Return the description of the API, and what it answers to each GET without an end."""
    described = client.get("/openapi.json")
    yield "API /openapi.json", described.text
    for path, methods in described.json()["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "get" not in methods or "text/event-stream" in content or path.endswith("/events"):
            continue
        filled = _filled(client, path)
        if filled:
            answer = client.get(filled)
            # The order of metrics is that in which something happened first.
            text = "\n".join(sorted(answer.text.split("\n"))) if path == "/metrics" else answer.text
            if answer.headers.get("content-type", "").partition(";")[0] == "application/json":
                text = json.dumps(answer.json(), indent=1, ensure_ascii=False)
            yield f"API {path}", f"{answer.status_code}\n{text}"


def _filled(client: httpx.Client, path: str) -> str:
    """Return a path with the first of what its list has; "" if it has nothing."""
    while (begin := path.find("/{")) >= 0:
        listed = client.get(path[:begin])
        rows: Any = listed.json() if listed.status_code == 200 else []
        if isinstance(rows, dict):
            rows = next((value for value in rows.values() if isinstance(value, list)), [])
        if not rows or not isinstance(rows[0], dict):
            return ""
        named = next((str(rows[0][key]) for key in _KEYS if key in rows[0]), "")
        end = path.index("}", begin) + 1
        path = f"{path[:begin]}/{named}{path[end:]}"
    return path


def _pages(client: httpx.Client) -> Iterator[tuple[str, str]]:
    """Return all pages that links lead to."""
    waiting, known = deque([_FIRST]), {_FIRST}
    named: Counter[str] = Counter()
    while waiting and len(known) < _MOST_PAGES:
        path = waiting.popleft()
        answer = client.get(path, headers={"accept": "text/html"})
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        name = without_chance(path)
        named[name] += 1
        yield f"page {name} ({named[name]})", f"{answer.status_code}\n{answer.text}"
        for link in _LINK.findall(answer.text):
            # What is sorted or filtered differently has the same parts.
            if link not in known and "?" not in link and not link.startswith("/static/"):
                known.add(link)
                waiting.append(link)

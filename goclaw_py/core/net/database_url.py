"""Check the URL of a database, each mistake in its own words, without quoting a password."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes

_ENCODE: Final = "characters such as / # ? @ [ ] in a user or password must be percent-encoded"
_BRACKETS: Final = "an IPv6 address is written in brackets, as in [::1]:5432"
_PORT: Final = "a port is a number from 1 to 65535"
_LAST_PORT: Final = 65_535
_LONGEST_LABEL: Final = 63


def url_problem(url: str) -> str | None:
    """Return what is wrong with a URL before anything is looked up or opened; None if nothing is.

    The driver has one error for most of these, and quotes parts of the URL in others.
    """
    return next(_problems(url), None)


def parameters(url: str) -> list[tuple[str, str]]:
    """Return the names and values behind the question mark. Raises ``ValueError``."""
    query = url.partition("#")[0].partition("?")[2]
    return parse_qsl(query, strict_parsing=True) if query else []


def split_hosts(url: str) -> tuple[str, str, str]:
    """Return what is before the hosts of a URL, the hosts with their ports, and what is behind."""
    begin = url.find("://") + 3
    place = re.compile(r"[^/?#]*").match(url, begin)
    end = begin if place is None else place.end()
    begin = max(begin, url.rfind("@", begin, end) + 1)
    return url[:begin], url[begin:end], url[end:]


def _problems(url: str) -> Iterator[str]:
    scheme, found, _ = url.partition("://")
    if not found or scheme.lower() not in ("postgresql", "postgres"):
        yield "must start with postgresql://"
        return
    if url != url.strip(" "):
        yield "there is a blank before or behind it"
    before, hosts, behind = split_hosts(url)
    account = before.partition("://")[2].removesuffix("@")
    # The rest of a password with one of these characters looks like a host, a path or a fragment.
    is_cut = not account and "@" in behind and next(_host_problems(hosts), None) is not None
    if is_cut or re.search(r"[@\[\]]", account) or "#" in behind:
        yield _ENCODE
        return
    yield from _encoding_problems(url)
    if hosts:
        yield from _host_problems(hosts)
    try:
        given = dict(parameters(url))
    except ValueError:
        yield "behind the ? are names and values, as in sslmode=require, joined by &"
        return
    yield from _place_problems(given, stands=bool(hosts))


def _place_problems(given: Mapping[str, str], *, stands: bool) -> Iterator[str]:
    """Check hosts and ports among parameters; ``stands`` if there are hosts behind the @."""
    # The driver would ignore them.
    if stands and "port" in given:
        yield "each port stands behind its host, as in one:5432,two:5433"
    if stands and "host" in given:
        yield "hosts stand behind the @ or in the parameter host, not in both"
    yield from _host_problems(given.get("host", "/"))
    for port in given.get("port", "5432").split(","):
        if not port:
            yield "a port is missing between the commas"
        elif not _is_port(port):
            yield _PORT


def _encoding_problems(url: str) -> Iterator[str]:
    if re.search(r"%(?![0-9A-Fa-f]{2})", url):
        yield "two hexadecimal digits must follow each %; the character % itself is written %25"
        return
    try:
        text = unquote_to_bytes(url).decode()
    except UnicodeDecodeError:
        yield "what is percent-encoded must be UTF-8, as in %C3%A9"
        return
    if "\0" in text:
        yield "the character %00 is not allowed"


def _host_problems(hosts: str) -> Iterator[str]:
    """Check hosts, each with or without a port, joined by commas."""
    for each in hosts.split(","):
        if each.startswith(("/", "%2F", "%2f")):
            continue
        name, bracket, port = each.rpartition("]")
        if not bracket:
            name, colon, behind = each.partition(":")
            port = colon + behind
        if ":" in port[1:] or (bracket and not (name.startswith("[") and _is_ipv6(name[1:]))):
            yield _BRACKETS
        elif not bracket:
            yield from _name_problems(name)
        if port and not (port.startswith(":") and _is_port(port[1:])):
            yield _PORT


def _name_problems(name: str) -> Iterator[str]:
    if not name:
        yield "a host is missing between the commas"
    elif name.startswith("["):
        yield _BRACKETS
    elif re.search(r"[\s/]", name):
        yield "a host has neither blanks nor /; the path of a socket folder begins with /"
    elif any(not 0 < len(label) <= _LONGEST_LABEL for label in name.rstrip(".").split(".")):
        yield f"each part of a host has 1 to {_LONGEST_LABEL} characters"


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text.replace("%25", "%"))
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 1 <= int(text) <= _LAST_PORT

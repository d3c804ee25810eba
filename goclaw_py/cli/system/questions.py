"""The questions of ``goclaw init`` (SPEC OPS-10). Each answer is checked, and tried, at once."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import typer

from goclaw_py.agents.models import Provider, find_key, find_url, is_sendable, lacks, read_model
from goclaw_py.cli import composition
from goclaw_py.cli.context import YES_OR_NO, waited_for
from goclaw_py.cli.output import folded, plain
from goclaw_py.cli.progress import progress
from goclaw_py.cli.system import local_servers
from goclaw_py.cli.system.local_servers import LocalModel
from goclaw_py.cli.system.settings_file import Answers
from goclaw_py.config import SettingErrors, Settings, load
from goclaw_py.core.errors import AgentError, GoclawError, MaybeSent, NotSent, SettingError
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.core.time.machine_zone import machine_zone

T = TypeVar("T")

OFFLINE = "offline"
_ID = re.compile(r"[0-9]{1,20}")
_VERB = re.compile(r"(is|has|must|cannot|needs) ")
_CLASS = re.compile(r"^Model\w+: ")
"""The name of a class in front of what happened, which is for the log."""


class _Discarded(GoclawError):
    """A person does not keep an answer that cannot be tested; the reason has been shown."""


class SetupTerminal(Protocol):
    """A person at a terminal."""

    def read(self, question: str, *, hidden: bool = False) -> str:
        """Return a line; ``hidden``: without showing it. Raises ``EOFError`` at the end."""

    def say(self, line: str) -> None:
        """Show a line."""


class Keyboard:
    """The person at the terminal of this process."""

    def read(self, question: str, *, hidden: bool = False) -> str:
        """Return a line."""
        return getpass.getpass(question) if hidden else input(question)

    def say(self, line: str) -> None:
        """Show a line."""
        typer.echo("\n".join(folded(plain(line))))


@dataclass(frozen=True, slots=True)
class Given:
    """The answers that the command line has; None: it has no answer."""

    token_file: Path | None = None
    model: str | None = None
    base_url: str | None = None
    key_file: Path | None = None
    timezone: str | None = None
    allow: str | None = None
    test: bool = True

    @property
    def has_settings(self) -> bool:
        """Return whether there is an answer that belongs into the settings file."""
        return any(value is not None for value in self._settings)

    @property
    def _settings(self) -> tuple[object, ...]:
        return (
            self.token_file,
            self.model,
            self.base_url,
            self.key_file,
            self.timezone,
            self.allow,
        )


class SetupQuestions:
    """Asks for what the command line does not say, or takes the defaults if nobody can be asked."""

    def __init__(
        self, prompt: SetupTerminal | None, given: Given, env: Mapping[str, str] = os.environ
    ) -> None:
        """Without ``prompt`` nobody is asked. Raises ``SettingError`` if ``env`` is wrong."""
        self.answers = Answers()
        self.bot = ""
        """The username of the bot, if it was tested."""
        self._prompt = prompt
        self._given = given
        self._env = env
        self._asked = 0
        self._has_token = _has_token(self._settings())

    @property
    def has_bot(self) -> bool:
        """Return whether there is a bot token."""
        return bool(self.answers.token or self._has_token)

    def ask(self) -> Answers:
        """Ask everything. Raises ``BadParameter`` and ``GoclawError`` for an option."""
        self._check_options()
        self._ask_token()
        self._ask_model()
        self._ask_timezone()
        self._ask_who_may_talk()
        return self.answers

    def _check_options(self) -> None:
        """Refuse a wrong option before the first question. Others may be missing yet."""
        before = self.answers
        model = None if self._given.model == OFFLINE else self._given.model
        for name, given in (("model", model), ("timezone", self._given.timezone)):
            try:
                if given is not None:
                    self._accept(**{name: given})
            except SettingError as error:
                for one in error.errors:
                    if one.key.rpartition(".")[2] == name:
                        raise typer.BadParameter(_reason(one), param_hint=f"--{name}") from None
        self.answers = before

    def confirm(self, question: str) -> bool:
        """Return whether the person agrees; by default they do not."""

        def check(text: str) -> bool:
            if text.lower() not in YES_OR_NO:
                raise GoclawError("answer y or n")
            return YES_OR_NO[text.lower()]

        return self._read(f"{question} [y/N]: ", check, default="n")

    # ------------------------------------------------------------------ Telegram

    def _ask_token(self) -> None:
        given = _secret("--token-file", self._given.token_file)
        if self._has_token:
            if given is not None:
                twice = "the environment also has a token; unset its variable"
                raise typer.BadParameter(twice, param_hint="--token-file")
            self._say("Telegram bot token: from the environment.")
            self._check_token("")
        else:
            question = "Telegram bot token, from @BotFather (hidden; Enter: no Telegram): "
            self._read(question, self._check_token, given, "--token-file", hidden=True)

    def _check_token(self, text: str) -> None:
        settings = self._accept(token=text)
        if self._given.test and (text or self._has_token):
            try:
                with progress("testing the token: asking Telegram"):
                    self.bot = waited_for(composition.bot_name(settings))
            except (NotSent, MaybeSent) as error:
                self._retain_untested(error)
            else:
                self._say(f"The bot is @{self.bot}.")

    def _ask_who_may_talk(self) -> None:
        if not self.has_bot:
            if self._given.allow is not None:
                raise typer.BadParameter("needs --token-file", param_hint="--allow")
            return
        question = (
            "Who may talk to the bot? Telegram ids such as 12345,67890\n"
            "(Enter: everybody whom you approve; a stranger gets a pairing code): "
        )
        self._read(
            question, lambda text: self._accept(allow=_ids(text)), self._given.allow, "--allow"
        )

    # ------------------------------------------------------------------ the model

    def _ask_model(self) -> None:
        """Ask for model, address and key, again if they do not work together."""
        default = OFFLINE
        local = self._local_models()
        while True:
            asked = self._asked
            model = self._ask_model_name(default, local)
            read = read_model(model)
            if read is None:
                given = {"--key-file": self._given.key_file, "--base-url": self._given.base_url}
                for option in (name for name, value in given.items() if value is not None):
                    raise typer.BadParameter("needs --model PROVIDER:NAME", param_hint=option)
                return
            if not self.answers.base_url:  # a chosen model of this machine has its address
                self._ask_address(read[0])
                self._ask_key(read[0])
            is_given = self._asked == asked  # all of it is from the command line
            try:
                self._try_model()
            except GoclawError as error:
                if is_given:
                    raise
                if not isinstance(error, _Discarded):
                    self._say(_refusal(error))
                numbers = [number for number, one in local.items() if one.setting == model]
                default = numbers[0] if numbers and self.answers.base_url else model
            else:
                return

    def _local_models(self) -> dict[str, LocalModel]:
        """Show the models that servers on this machine have; return them by their numbers."""
        if self._prompt is None or self._given.model is not None or not self._given.test:
            return {}
        with progress("looking for model servers on this machine"):
            found = waited_for(local_servers.find_local_models())
        local = {str(number): model for number, model in enumerate(found, 1)}
        width = max((len(model.setting) for model in found), default=0)
        if local:
            self._say("Models on this machine:")
        for number, model in local.items():
            server = model.server
            self._say(f"{number:>3}  {model.setting:<{width}}  {server.name}, {server.base_url}")
        return local

    def _ask_model_name(self, default: str, local: Mapping[str, LocalModel]) -> str:
        def check(text: str) -> str:
            alike = (one for one in local.values() if text in (one.name, one.setting))
            chosen = local.get(text) or next(alike, None)
            if chosen is not None:
                self._accept(model=chosen.setting, base_url=chosen.server.base_url, key="")
                return chosen.setting
            if local and text.isdigit():
                raise GoclawError(f"there is no number {text}: choose {' or '.join(local)}")
            self._accept(model="" if text == OFFLINE else text, base_url="", key="")
            read = read_model(text)
            if read is not None and not read[0].is_installed:
                raise GoclawError(f"its library is not installed: {read[0].install}")
            return text

        numbers = "a number above, or " if local else ""
        names = "such as anthropic:claude-sonnet-5-5 or openai:gpt-4o"
        question = f"Model, {numbers}{names} [{default}]: "
        return self._read(question, check, self._given.model, "--model", default)

    def _ask_address(self, provider: Provider) -> None:
        given = self._given.base_url
        if given is None and (
            not provider.needs_url or find_url(provider, None, self._env) or self._prompt is None
        ):
            return

        def check(text: str) -> None:
            if not text:
                raise GoclawError("an address is needed, such as http://127.0.0.1:11434/v1")
            self._accept(base_url=text)

        self._read("Address of its server: ", check, given, "--base-url")

    def _ask_key(self, provider: Provider) -> None:
        given = _secret("--key-file", self._given.key_file)
        in_env = find_key(provider, None, self._env)
        url = find_url(provider, self.answers.base_url, self._env)
        is_needed = lacks(provider, "", url) is not None
        if given is None and (self._prompt is None or not provider.needs_key):
            if is_needed and not in_env and self._given.test:
                variable = provider.key_variable
                raise GoclawError(
                    f"{self.answers.model} needs a key: add --key-file FILE, or set {variable}"
                )
            return  # if the environment has one, it is used from there
        hint = "" if is_needed else "; Enter: none"
        if in_env:
            hint = f"; Enter: a copy of the one in {provider.key_variable}"

        def check(text: str) -> None:
            if not text and is_needed:
                raise GoclawError("this model needs a key")
            if not is_sendable(text):
                raise GoclawError("the key has characters that cannot be sent")
            self._accept(key=text)

        question = f"API key of {provider.value} (hidden{hint}): "
        self._read(question, check, given, "--key-file", in_env, hidden=True)

    def _try_model(self) -> None:
        if self._given.test:
            try:
                with progress(f"testing the model: asking {self.answers.model}"):
                    waited_for(composition.probe_model(self._settings()))
            except AgentError as error:
                if not error.retryable:
                    raise
                url = self.answers.base_url
                self._retain_untested(error, f"{url}: " if url else "")
            else:
                self._say("The model answers.")

    def _retain_untested(self, error: GoclawError, where: str = "") -> None:
        """Ask whether an answer that cannot be tested now is good; raise its error if not."""
        why = f"It cannot be tested now: {where}{_reason(error)}."
        if self._prompt is None:
            raise GoclawError(f"{why} To keep it untested: --no-test") from error
        self._say(why)
        if not self.confirm("Keep it untested?"):
            raise _Discarded(str(error)) from error

    # ------------------------------------------------------------------ the rest

    def _ask_timezone(self) -> None:
        default = machine_zone(self._env)
        question = f"Time zone [{default}]: "
        given = self._given.timezone
        self._read(question, lambda text: self._accept(timezone=text), given, "--timezone", default)

    def _accept(self, **changes: Any) -> Settings:
        """Keep answers if channels and agents accept them, else raise ``SettingError``."""
        before = self.answers
        self.answers = replace(before, **changes)
        try:
            settings = self._settings()
            waited_for(composition.check_parts(settings))
        except GoclawError:
            self.answers = before
            raise
        return settings

    def _settings(self) -> Settings:
        """Return the settings with the answers so far, and without any file."""
        return load(Path(os.devnull), {**self._env, **self.answers.variables})

    def _say(self, line: str) -> None:
        if self._prompt is not None:
            self._prompt.say(line)

    def _read(
        self,
        question: str,
        check: Callable[[str], T],
        given: str | None = None,
        option: str = "",
        default: str = "",
        *,
        hidden: bool = False,
    ) -> T:
        """Return the checked option, default or answer; ask until an answer is accepted."""
        if given is not None or self._prompt is None:
            try:
                return check(_printable(default if given is None else given))
            except SettingError as error:
                raise typer.BadParameter(_reason(error), param_hint=option) from None
        while True:
            if not self._asked:
                self._prompt.say("Enter accepts a default. Ctrl-C ends without any change.\n")
            self._asked += 1
            text = self._prompt.read(question, hidden=hidden).strip()
            try:
                return check(_printable(text or default))
            except _Discarded:
                continue
            except GoclawError as error:
                self._prompt.say(_refusal(error))


def _has_token(settings: Settings) -> bool:
    telegram = settings.channels.get("telegram")
    return telegram is not None and not {"token", "token_file"}.isdisjoint(telegram.options)


def _secret(option: str, file: Path | None) -> str | None:
    """Return the secret that a file contains. Raises ``BadParameter``."""
    if file is None:
        return None
    try:
        found = file.expanduser().read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise typer.BadParameter(f"{file} cannot be read: {reason}", param_hint=option) from None
    if not found:
        raise typer.BadParameter(f"{file} is empty", param_hint=option)
    return found


def _ids(text: str) -> tuple[str, ...]:
    found = tuple(text.replace(",", " ").split())
    if not all(map(_ID.fullmatch, found)):
        raise SettingError("allow", text, "must be numbers separated by commas")
    return found


def _printable(text: str) -> str:
    """Refuse control characters and such, which no answer needs. Raises ``SettingError``."""
    if not text.isprintable():
        raise SettingError("answer", HIDDEN, "has characters that cannot be printed")
    return text


def _refusal(error: GoclawError) -> str:
    """Return a sentence that says what is wrong with an answer."""
    reason = _reason(error)
    return f"That {reason}" if _VERB.match(reason) else f"That does not work: {reason}"


def _reason(error: GoclawError) -> str:
    """Return what is wrong, without the place of the setting, which the person has not seen."""
    if isinstance(error, SettingErrors):
        return error.errors[0].allowed
    if isinstance(error, AgentError):
        return _CLASS.sub("", str(error)).removesuffix(".")
    return error.allowed if isinstance(error, SettingError) else str(error)

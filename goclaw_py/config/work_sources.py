"""``[sources.NAME]``: sources of work items for jobs (SPEC CRON-18)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from goclaw_py.config.types import (
    Duration,
    Flag,
    HiddenText,
    Matching,
    Section,
    Text,
    WebAddress,
    allowed,
)

SOURCE_TOKEN: Final = HiddenText(
    r"[!-~]{1,512}", "up to 512 printable ASCII characters without spaces"
)
_LABEL: Final = r"[^,\x00-\x1f\x7f]{0,49}[^,\s\x00-\x1f\x7f]"
_A_LABEL: Final = "a label of up to 50 characters without commas"
_OF_A_TABLE: Final = frozenset({"kind", "queue", "forgotten_after_s"})

Label = Annotated[str, Matching(_LABEL, _A_LABEL)]


class WorkSourceSettings(Section):
    """One source. ``kind`` decides which of the other keys are allowed."""

    kind: Literal["table", "github"]
    """table: rows of work_items in the database; github: issues"""
    forgotten_after_s: Annotated[float, Duration(60)] = Field(
        default=86_400.0, alias="forgotten_after"
    )
    """the time after which claimed work that was never finished is released; must be longer than
    any run"""

    queue: Annotated[
        str | None,
        Matching(r"[^\0]{1,200}", "the queue of the rows, a text of up to 200 characters"),
    ] = None
    """table: the queue of the rows; default: the name of the source"""

    repo: Annotated[
        str | None,
        Matching(r"[A-Za-z0-9-]{1,100}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}", "OWNER/NAME"),
    ] = None
    """github: the repository, as OWNER/NAME"""
    token: Annotated[SecretStr | None, SOURCE_TOKEN] = None
    """github: a token that may read and write issues of the repository"""
    token_file: Path | None = None
    """a file that contains the token"""
    token_env: Text | None = None
    """the environment variable that contains the token"""
    label: Label = "goclaw"
    """github: issues with this label are work; the label is removed when the work is finished"""
    claim_label: Label = "in-progress"
    """github: added to an issue while a job handles it"""
    failed_label: Annotated[str, Matching(f"({_LABEL})?", f"{_A_LABEL}, or nothing")] = "failed"
    """github: added to an issue when its work failed; "": no label"""
    close: Annotated[bool, Flag()] = False
    """github: true: close an issue when its work succeeded"""
    base_url: WebAddress = "https://api.github.com"
    """github: the address of the API"""

    @model_validator(mode="after")
    def _has_its_own_keys(self) -> Self:
        if self.kind == "table":
            fields = type(self).model_fields
            foreign = sorted(
                fields[key].alias or key for key in self.model_fields_set - _OF_A_TABLE
            )
            if foreign:
                raise allowed(f'must not have {", ".join(foreign)}: only for kind = "github"')
            return self
        if self.queue is not None:
            raise allowed('must not have queue: only for kind = "table"')
        if self.repo is None:
            raise allowed('must have a repo, such as repo = "OWNER/NAME"')
        if all(each is None for each in (self.token, self.token_file, self.token_env)):
            raise allowed("must have a token: token_file, token_env or token")
        labels = [self.label, self.claim_label, *([self.failed_label] if self.failed_label else [])]
        if len({label.casefold() for label in labels}) < len(labels):
            raise allowed("label, claim_label and failed_label must be different")
        return self

"""``[sources.NAME]``: sources of work items for jobs (SPEC CRON-18)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from goclaw_py.config.section import Section
from goclaw_py.config.types import Duration, Flag, HiddenText, Matching, allowed

_LABEL: Final = r"[^,\x00-\x1f\x7f]{0,49}[^,\s\x00-\x1f\x7f]"
_A_LABEL: Final = "a label of up to 50 characters without commas"
_OF_A_TABLE: Final = frozenset({"kind", "queue", "forgotten_after_s"})

Label = Annotated[str, Matching(_LABEL, _A_LABEL)]


class WorkSourceSettings(Section):
    """One source. ``kind`` decides which of the other keys are allowed."""

    kind: Literal["table", "github"] = Field(
        description="table: rows of work_items in the database; github: issues"
    )
    forgotten_after_s: Annotated[float, Duration(60)] = Field(
        default=86_400.0,
        alias="forgotten_after",
        description="the time after which claimed work that was never finished is released; "
        "must be longer than any run",
    )

    queue: Annotated[
        str | None,
        Matching(r"[^\0]{1,200}", "the queue of the rows, a text of up to 200 characters"),
    ] = Field(
        default=None, description="table: the queue of the rows; default: the name of the source"
    )

    repo: Annotated[
        str | None,
        Matching(r"[A-Za-z0-9-]{1,100}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}", "OWNER/NAME"),
    ] = Field(default=None, description="github: the repository, as OWNER/NAME")
    token: Annotated[
        SecretStr | None,
        HiddenText(r"[!-~]{1,512}", "a token of printable ASCII characters without spaces"),
    ] = Field(
        default=None, description="github: a token that may read and write issues of the repository"
    )
    token_file: Path | None = Field(default=None, description="a file that contains the token")
    token_env: Annotated[str | None, Matching(r"(?s).*\S.*", "text that is not empty")] = Field(
        default=None, description="the environment variable that contains the token"
    )
    label: Label = Field(
        default="goclaw",
        description="github: issues with this label are work; the label is removed when the "
        "work is finished",
    )
    claim_label: Label = Field(
        default="in-progress", description="github: added to an issue while a job handles it"
    )
    failed_label: Annotated[str, Matching(f"({_LABEL})?", f"{_A_LABEL}, or nothing")] = Field(
        default="failed", description='github: added to an issue when its work failed; "": no label'
    )
    close: Annotated[bool, Flag()] = Field(
        default=False, description="github: true: close an issue when its work succeeded"
    )
    base_url: Annotated[
        str, Matching(r"https?://\S+", "an address that starts with http:// or https://")
    ] = Field(default="https://api.github.com", description="github: the address of the API")

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

"""silences.yaml, beside fabric.yaml: findings that do not count, who silenced them, why and until when. Optional."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from netkit.access.settings import AccessModel
from netkit.judge import Verdict
from netkit.judge.silence import Fault, Silence, Subject

FILE = "silences.yaml"
EXAMPLE = "2026-12-01T08:00:00Z"
ID_LENGTH = 6


ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


def _moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"{{given}} is not a time; write it as {EXAMPLE}")
    if found.tzinfo is None:
        raise ValueError(f"{{given}} has no time zone; write it as {EXAMPLE}")
    return found


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation")
]
Word = Annotated[str, Field(min_length=1, max_length=255)]
Words = Annotated[
    tuple[Word, ...],
    BeforeValidator(_listed),
    Field(min_length=1),
    WithJsonSchema(ONE_OR_MORE),
]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1), WithJsonSchema(ONE_OR_MORE)]


class Entry(AccessModel):
    """What a silence and an acknowledgement have in common."""

    model_config = ConfigDict(populate_by_name=True)

    by: Text = Field(description="who says so")
    why: Text = Field(description="the reason")
    ticket: Text | None = Field(None, description="where the work is tracked")
    lab: Word | None = Field(None, description="for this lab of the fabric; without it, for the fabric itself")
    id: Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")] | None = Field(
        None, description="its name; without it, six digits that follow from what it is about"
    )

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "Entry":
        begins, ends = getattr(self, "begins", None), getattr(self, "until", None)
        if begins is not None and ends is not None and ends <= begins:
            raise ValueError("ends before it begins; give an until later than from")
        return self


class SilenceEntry(Entry):
    """Silences findings of checks at places, until a time."""

    check: Words = Field(description="checks: a name, a file or a glob; a list of them")
    where: Words = Field(description="DEVICE or DEVICE:PLACE, names or globs; `fabric` is the whole; a list of them")
    until: Moment = Field(description=f"when it ends, as {EXAMPLE}")
    begins: Moment | None = Field(None, alias="from", description="when it begins; without it, at once")
    everything: bool = Field(False, description="that it covers every check on every device is meant")

    def silence(self) -> Silence:
        return Silence(
            self.id or digest("silence", self.lab, self.check, self.where),
            self.check,
            tuple(map(Subject.of, self.where)),
            self.by,
            self.why,
            0.0 if self.begins is None else self.begins.timestamp(),
            self.until.timestamp(),
            self.ticket or "",
        )


class AcknowledgementEntry(Entry):
    """Silences one finding as it was found, until it clears; a worse or different fault counts again."""

    check: Word = Field(description="the check")
    where: Word = Field(description="DEVICE or DEVICE:PLACE, `fabric` or `fabric:PLACE`")
    verdict: Literal["warn", "fail"] = Field(description="how bad it may be")
    begins: Moment = Field(alias="from", description=f"when it was acknowledged, as {EXAMPLE}")
    until: Moment | None = Field(None, description="when it ends, if it is not well before; without it, then only")
    fault: Texts | None = Field(
        None, description="text of the finding; a list of them; without, the verdict alone counts"
    )
    cause: Text | None = Field(None, description="the finding it followed from, as CHECK[DEVICE] PLACE")

    def silence(self) -> Silence:
        return Silence(
            self.id or digest("acknowledgement", self.lab, [self.check], [self.where]),
            (self.check,),
            (Subject.of(self.where),),
            self.by,
            self.why,
            self.begins.timestamp(),
            None if self.until is None else self.until.timestamp(),
            self.ticket or "",
            Fault(Verdict[self.verdict.upper()], self.fault or (), self.cause or ""),
        )


class SilenceFile(AccessModel):
    """All of silences.yaml."""

    silences: tuple[SilenceEntry, ...] | None = Field(None, description="findings that are muted until a time")
    acknowledgements: tuple[AcknowledgementEntry, ...] | None = Field(
        None, description="findings that somebody is working on, until they pass"
    )

    @property
    def entries(self) -> tuple[SilenceEntry | AcknowledgementEntry, ...]:
        """All entries, in the order of the file."""
        return *(self.silences or ()), *(self.acknowledgements or ())


def digest(kind: str, lab: str | None, checks: Iterable[str], places: Iterable[str]) -> str:
    """Return the id of an entry that gives none: the same when its end or its reason is changed."""
    content = "\n".join((kind, lab or "", *sorted(checks), "", *sorted(places)))
    return hashlib.sha256(content.encode()).hexdigest()[:ID_LENGTH]


def of_lab(entries: Iterable[SilenceEntry | AcknowledgementEntry], lab: str) -> tuple[Silence, ...]:
    """Return the silences of a lab of a fabric, or without a name of the fabric itself."""
    return tuple(one.silence() for one in entries if (one.lab or "") == lab)


def schema() -> dict[str, Any]:
    return SilenceFile.model_json_schema(by_alias=True)

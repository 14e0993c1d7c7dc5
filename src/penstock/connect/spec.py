"""A connector as TOML or a dict: what may stand there, and what is refused with the way out."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.connect.connector import EVERY_SECONDS, Expect, Signs
from penstock.model.errors import BadConfig
from penstock.model.limits import near
from penstock.model.times import in_seconds

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
EVERY_LEAST = 60.0
PAGES_MAX = 200
Kind = Literal["json", "html", "jsonld", "rss", "snapshot", "singer"]


class Paginator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the next page is found: `offset` and `page` count, `next_link` follows, `bisect` halves a range of numbers while an
    answer has as many records as the source sends at most."""

    kind: Literal["single", "offset", "page", "next_link", "bisect"] = "single"
    path: str = ""  # of the next link
    param: str | tuple[str, str] = ""  # the query's parameter; of `bisect` those of the lower and upper bound
    size: int = 0  # records on a full page; of `bisect` the most that the source sends
    size_param: str = ""
    start: int | None = None  # of pages 1, of offsets 0, where nothing is given
    overlap: int = 0  # records that pages of `offset` share, for lists that shift while they are read
    pages: int = 20  # at most
    range: tuple[int, int] = (0, 100_000)
    least: int = 250  # `bisect` divides no smaller range


class Cursor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The field that grows with time, by a path in the record. Records at or behind it are left out, less `lag`."""

    path: str
    type: Literal["iso", "epoch", "number"] = "iso"
    lag: str | float = 0
    filter: bool = True  # without it, every run reads all records, and the cursor only says how far it came
    full_every: str | float = 0


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a value is, and what it becomes."""

    path: str = ""
    as_: str = msgspec.field(name="as", default="")
    map: dict[str, Any] = {}
    match: str = ""  # a pattern; its first group is the value
    value: Any = None  # a constant, where there is no path
    scale: float = 1.0  # a number is multiplied by it, such as 0.092903 for square feet
    plus: float = 0.0  # and then added to this
    least: float | None = None  # a smaller number is no value
    most: float | None = None


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One source. `records`, `id`, `url` and fields are JMESPath; in HTML they are CSS selectors."""

    name: str
    base: str = ""
    kind: Kind = "json"
    params: dict[str, Any] = {}
    headers: dict[str, str] = {}  # a value `env:NAME` is read from the environment
    paginator: Paginator = Paginator()
    records: str = ""
    id: str | Field = "id"
    url: str | Field = ""
    order: Literal["none", "descending", "ascending"] = "none"
    cursor: Cursor | None = None
    blocked: Signs = Signs()
    expect: Expect = Expect()
    fields: dict[str, str | Field] = {}
    every: str | float = EVERY_SECONDS
    rate: float = 1.0  # requests a second at most
    robots: bool | None = None  # obey robots.txt; pages do unless this says false
    types: tuple[str, ...] = ()  # of schema.org
    command: tuple[str, ...] = ()  # of a Singer tap; never set over HTTP


def read_spec(given: str | Path | Mapping[str, Any]) -> Spec:
    """Return the connector of a TOML file or a dict, or raise BadConfig."""
    if isinstance(given, Mapping):
        return _checked(dict(given), str(given.get("name", "a connector")))
    path = Path(given)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"The connector {path} cannot be read: {error.strerror}.", path=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"The connector {path} is not valid TOML: {error}.", path=str(path)) from error
    return _checked(values, str(path))


def _checked(values: dict[str, Any], place: str) -> Spec:
    try:
        spec = msgspec.convert(values, Spec)
    except msgspec.ValidationError as error:
        text = str(error)
        unknown = re.search(r"unknown field `(\w+)`", text)
        hint = near(unknown[1], list(Spec.__struct_fields__)) if unknown else ""
        raise BadConfig(f"{place}: {text}. {hint}".rstrip(), path=place) from error
    for problem in _problems(spec):
        raise BadConfig(f"{place}: {problem}", path=place)
    return spec


def _problems(spec: Spec) -> list[str]:
    found = []
    if not NAME.fullmatch(spec.name):
        found.append(f"name is {spec.name!r}; use small letters, digits and . _ -, such as olx-warszawa.")
    if spec.kind == "singer":
        if not spec.command:
            found.append('a Singer tap needs command = ["tap-name", "--config", "config.json"].')
    elif not spec.base.startswith(("https://", "http://")):
        found.append(f"base is {spec.base!r}; write the whole URL, with https://.")
    if spec.command and spec.kind != "singer":
        found.append('command is for kind = "singer" only.')
    if spec.kind in ("json", "snapshot", "html") and not spec.records:
        found.append('records says where the list is: "data.items", "@" for a bare list, or a CSS selector for HTML.')
    if not spec.fields and spec.kind not in ("jsonld", "rss", "singer"):
        found.append("there are no [fields].")
    if in_seconds(spec.every) < EVERY_LEAST:
        found.append(f"every is {spec.every}; ask no source more often than once a minute.")
    if not 0 < spec.rate <= 50:
        found.append(f"rate is {spec.rate}; write requests a second, above 0 and up to 50.")
    pager = spec.paginator
    if not 1 <= pager.pages <= PAGES_MAX:
        found.append(f"paginator.pages is {pager.pages}; a run reads 1 to {PAGES_MAX} pages.")
    if pager.kind == "next_link" and not pager.path:
        found.append('a next_link needs path, such as "links.next.href".')
    if pager.kind in ("offset", "page", "bisect") and not pager.param:
        found.append(f"the paginator {pager.kind} needs param, the name of the query's parameter.")
    if pager.kind in ("offset", "bisect") and pager.size <= pager.overlap:
        found.append(f"the paginator {pager.kind} needs size, larger than overlap.")
    if pager.kind == "bisect" and isinstance(pager.param, str):
        found.append('the paginator bisect needs two parameters: param = ["minPrice", "maxPrice"].')
    if spec.order != "none" and spec.cursor is None:
        found.append(f"order is {spec.order}, and there is no cursor.")
    for name, each in spec.fields.items():
        if isinstance(each, Field) and each.match:
            try:
                re.compile(each.match)
            except re.error as error:
                found.append(f"fields.{name}.match is no pattern: {error}.")
    return found


def header_values(spec: Spec) -> dict[str, str]:
    """Return the headers with what the environment holds."""
    values = {}
    for name, value in spec.headers.items():
        if value.startswith("env:"):
            variable = value.removeprefix("env:")
            value = os.environ.get(variable, "").strip()
            if not value:
                raise BadConfig(f"{spec.name} needs the environment variable {variable} for its header {name}.")
        values[name] = value
    return values

"""How values look in HTML: the kinds of `views.view`, with times that the browser keeps current."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from penstock.model.redaction import redacted, without_secrets
from penstock.model.times import iso_z
from penstock.pages import Column, PageAction, Section
from penstock.views.view import (
    KINDS,
    NONE,
    Row,
    ago_text,
    bytes_text,
    counted,
    micros_of,
    number_text,
    printable,
    rate_text,
    short,
    small_usd_text,
    span_text,
    tone_of,
    took_text,
    usd_text,
)

PROSE_SHOWN = 240  # characters of an error in a table
PAYLOAD_SHOWN = 65_536  # characters; the whole is in the JSON of the page
NOT_KEPT = ("part", "body", "payload", "typed", "reason_given")  # of the parameters of a page in the links on it
TIMES = ("time", "due", "exact_time")


def environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader([PackageLoader("penstock.web.ui", "templates"), FunctionLoader(_of_app)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "badge": badge,
        "bytes": bytes_text,
        "count": lambda value: f"{value:,}",
        "counted": counted,
        "id8": short_id,
        "json": payload_text,
        "micros": micros_of,
        "number": number_text,
        "path": path_part,
        "rate": rate_text,
        "redacted": redacted,
        "short": short,
        "small_usd": small_usd_text,
        "span": span_text,
        "tone": tone_of,
        "took": took_text,
        "usd": usd_text,
    }
    made.globals |= {"linked_to": linked_to, "pressed": pressed, "url_of": url_of}
    made.globals |= {"cell": cell, "time": time_tag, "moment": moment, "url": url, "here": here}
    made.globals |= {"spark": sparkline, "chart_data": chart_data, "track_data": track_data}
    return made


def _of_app(path: str) -> str | None:
    """Return the template of a page of an app, which names its own file."""
    return Path(path).read_text("utf-8") if Path(path).is_absolute() else None


def linked_to(column: Column, row: Row) -> str | None:
    """Return the page of the app that a value leads to; None where the row lacks a part of its address."""
    names = [name for _, name, _, _ in Formatter().parse(column.link) if name]
    if not column.link or any(row.get(name) in (None, "") for name in names):
        return None
    return "/pages" + column.link.format(**{name: path_part(row[name]) for name in names})


@pass_context
def pressed(context: Context, action: PageAction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a button of an app's page posts, or the form that it leads to."""
    known = action.known(given)
    form = None if not action.asks(given) else url_of(context, f"/forms{action.path}", known)
    return {"fields": known, "form": form, "to": f"/do/pages{action.path}"}


@pass_context
def url_of(context: Context, path: str, query: Mapping[str, object]) -> str:
    return f"{context['prefix']}{path}" + (f"?{urlencode(dict(query))}" if query else "")


@pass_context
def url(context: Context, path: str, *parts: object, **query: object) -> str:
    """Return the address of a page under the prefix of the dashboard: `url("/queues", name)`, `url("/dead", queue=name)`."""
    return address(context["prefix"], path, *parts, **query)


def address(prefix: str, path: str, *parts: object, **query: object) -> str:
    whole = prefix + path + "".join(f"/{path_part(part)}" for part in parts)
    given = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "", False)}
    return whole + (f"?{urlencode(given)}" if given else "")


@pass_context
def here(context: Context, **changed: object) -> str:
    """Return the address of this page with other parameters; None takes one out."""
    query = {**context["query"], **changed}
    kept = {name: value for name, value in query.items() if name not in NOT_KEPT}
    return address(context["prefix"], context["path"], **kept)


def path_part(value: object) -> str:
    return quote(str(value), safe="")


@pass_context
def cell(context: Context, column: Column, row: Row) -> Markup | str:
    """Return one value of a row, or a dash where there is none."""
    value = row.get(column.name) if column.of is None else column.of(row)
    now: int = context["now"]
    if value is None or value == "":
        return Markup('<span class="none">{}</span>').format(NONE)
    if column.kind in TIMES:
        return time_of(iso_z(micros_of(str(value))), now, exact=column.kind == "exact_time")
    if column.kind == "url":
        text = str(value)
        is_web = text.startswith(("https://", "http://")) and text.isprintable()
        tag = Markup('<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>')
        return tag.format(text, short(text, 60)) if is_web else short(text, 60)
    if column.kind == "state":
        return badge(str(value))
    text = KINDS[column.kind](value, now)
    return short(redacted(text), PROSE_SHOWN) if column.kind == "prose" else printable(text)


def badge(state: object, tone: str | None = None) -> Markup:
    """Return a state as a word with a shape: colour alone says nothing to some readers."""
    text = str(state).replace("_", " ")
    kind = (tone_of(str(state)) if tone is None else tone) or "dull"
    return Markup('<span class="badge {}">{}</span>').format(kind, text)


@pass_context
def time_tag(context: Context, iso: str | None, exact: bool = False) -> Markup:
    now: int = context["now"]
    return Markup('<span class="none">-</span>') if iso is None else time_of(iso, now, exact=exact)


@pass_context
def moment(context: Context, micros: int | None) -> Markup:
    now: int = context["now"]
    return Markup('<span class="none">-</span>') if micros is None else time_of(iso_z(micros), now)


def time_of(iso: str, now: int, *, exact: bool = False) -> Markup:
    """Return a time relative to now, which the browser keeps current; the tooltip has it in UTC."""
    utc = f"{iso[:19].replace('T', ' ')} UTC"
    ago = ago_text(micros_of(iso), now)
    tag = Markup('<time datetime="{}" title="{}">{}</time>').format(iso, utc, ago)
    return tag + Markup(' <span class="utc">{}</span>').format(utc) if exact else tag


def short_id(id: object) -> Markup:
    """Return the last digits of an id, in which ids of one moment differ; the tooltip has the whole."""
    text = str(id)
    shown = f"…{text[-8:]}" if len(text) in (32, 36) else short(text, 40)
    return Markup('<span class="id" title="{}">{}</span>').format(text, shown)


def payload_text(value: Any, hidden: Sequence[str] = ()) -> str:
    """Return a payload on several lines, without secrets and without the fields that the deployment hides."""
    if isinstance(value, msgspec.Raw | bytes | memoryview):
        value = bytes(value).decode(errors="replace")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return clipped(redacted(value))
    plain = without_secrets(_without(value, frozenset(hidden)))
    return clipped(redacted(json.dumps(plain, indent=2, ensure_ascii=False)))


def shared(value: Any, hidden: Sequence[str], *, shows_payloads: bool, name: str = "") -> Any:
    """Return facts as a visitor may have them as JSON: payloads as pages show them, or not at all."""
    if isinstance(value, msgspec.Raw) or (name == "payload" and isinstance(value, str)):
        if not shows_payloads:
            return None
        text = payload_text(value, hidden)
        try:
            return json.loads(text) if name != "payload" else text
        except ValueError:
            return text
    if isinstance(value, Section):
        value = value.shared()
    if isinstance(value, Mapping):
        return {key: shared(each, hidden, shows_payloads=shows_payloads, name=str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shared(each, hidden, shows_payloads=shows_payloads, name=name) for each in value]
    return value


def clipped(text: str) -> str:
    more = len(text) - PAYLOAD_SHOWN
    return text if more <= 0 else f"{text[:PAYLOAD_SHOWN]}\n... and {more:,} more characters"


def _without(value: Any, hidden: frozenset[str]) -> Any:
    if not hidden:
        return value
    if isinstance(value, Mapping):
        return {name: "***" if name in hidden else _without(each, hidden) for name, each in value.items()}
    if isinstance(value, list):
        return [_without(each, hidden) for each in value]
    return value


def sparkline(values: Sequence[float], label: str, width: int = 96, height: int = 22) -> Markup:
    """Return numbers over time as a line, without a script. `label` says what it shows."""
    most = max(values, default=0)
    if not most or len(values) < 2:
        return Markup('<svg class="spark" width="{}" height="{}" role="img" aria-label="{}: none"></svg>').format(
            width, height, label
        )
    step = width / (len(values) - 1)
    points = [
        f"{index * step:.1f},{height - 2 - value / most * (height - 4):.1f}" for index, value in enumerate(values)
    ]
    line = " ".join(points)
    area = f"0,{height} {line} {width},{height}"
    return Markup(
        '<svg class="spark" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<polygon points="{}"/><polyline points="{}"/></svg>'
    ).format(width, height, width, height, f"{label}: at most {number_text(most)}", area, line)


def chart_data(now: int, lines: Sequence[tuple[str, str, Sequence[float], bool]]) -> str:
    """Return numbers a minute in the form that the chart library draws, without the minute that has not ended: it would look
    like a fall."""
    count = len(lines[0][2])
    seconds = [now // 1_000_000 - 60 * back for back in reversed(range(1, count))]
    series = [{"label": label, "colour": colour, "fill": fill} for label, colour, _, fill in lines]
    return json.dumps({"data": [seconds, *(list(values)[:-1] for _, _, values, _ in lines)], "series": series})


def track_data(track: Mapping[str, Sequence[float | None]]) -> str:
    """Return a pace and the limit that was found, over the time in which they were watched."""
    series = [
        {"label": "rate", "colour": "--accent", "fill": True},
        {"label": "limit found", "colour": "--warn", "dash": [5, 4]},
    ]
    return json.dumps({"data": [track["at"], track["rate"], track["limit"]], "series": series})

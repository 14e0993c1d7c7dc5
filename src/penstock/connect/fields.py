"""Reads values out of a record: by JMESPath or CSS selector, then as numbers, prices, times or mapped words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html import unescape
from typing import Any

from penstock.connect.page import RECORD_BYTES_MAX
from penstock.connect.price import parse_price
from penstock.connect.spec import Field
from penstock.model.errors import BadConfig
from penstock.model.times import from_text, to_text

TEXT_MAX = 20_000  # characters of one value
_PLAIN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_MACHINE = re.compile(r"[-+]?\d{1,15}(\.\d{1,15})?", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d[\d\s\u00a0\u202f.,'’]*")
_CSS = re.compile(r"^(?P<selector>.*?)(?:::(?P<what>text|html|attr\((?P<name>[\w:-]+)\)))?$", re.DOTALL)
Find = Callable[[Any, str], Any]


def find_json(record: Any, path: str) -> Any:
    """Return what a JMESPath finds in a record. A plain one, such as `place.city`, needs no library to be evaluated."""
    expression = _compiled(path)
    if isinstance(expression, tuple):
        for name in expression:
            record = record.get(name) if isinstance(record, dict) else None
        return record
    try:
        return expression.search(record)
    except ValueError:  # a function in the path does not take what the record has there
        return None


@lru_cache(1_000)
def _compiled(path: str) -> Any:
    if _PLAIN.fullmatch(path):
        return tuple(path.split("."))
    jmespath = needed("jmespath")
    try:
        return jmespath.compile(path)
    except jmespath.exceptions.JMESPathError as error:
        raise BadConfig(f"{path!r} is no JMESPath: {error}.", path=path) from error


def find_css(node: Any, path: str) -> Any:
    """Return the text, an attribute or the HTML of what a selector finds; the node's own for an empty selector."""
    found = _CSS.match(path)
    assert found is not None
    try:
        target = node.css_first(found["selector"]) if found["selector"].strip() else node
    except ValueError as error:
        raise BadConfig(f"{path!r} is no CSS selector: {error}.", path=path) from error
    if target is None:
        return None
    if found["name"]:
        return target.attributes.get(found["name"])
    return target.html if found["what"] == "html" else " ".join(target.text(separator=" ").split())


def read_field(record: Any, field: str | Field, find: Find) -> Any:
    """Return the value of a field, None where there is none. A value that cannot be converted is none."""
    if isinstance(field, str):
        return plain(find(record, field))
    value = find(record, field.path) if field.path else field.value
    if field.match and value is not None:
        matched = re.search(field.match, str(value)[:TEXT_MAX])
        value = None if matched is None else (matched[1] if matched.re.groups else matched[0])
    if field.map:
        value = field.map.get(str(value), value if field.as_ else None)
    value = convert(value, field.as_)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if field.scale != 1.0 or field.plus:
            value = round(value * field.scale + field.plus, 6)
        below = field.least is not None and value < field.least
        above = field.most is not None and value > field.most
        return None if below or above else value
    return plain(value)


def plain(value: Any) -> Any:
    """Return a value that can be saved: text is cut, and what is too large is left out."""
    if isinstance(value, str):
        return value.strip()[:TEXT_MAX]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, list | dict) and len(str(value)) > RECORD_BYTES_MAX:
        return None
    return value


def convert(value: Any, kind: str) -> Any:
    if value is None or not kind:
        return value
    known = _CONVERSIONS.get(kind)
    if known is not None:
        try:
            return known(value)
        except (ValueError, OverflowError, OSError, TypeError):
            return None
    if kind.startswith("date:"):
        layout = kind.removeprefix("date:")
        stamp, layout = (
            (str(value).strip(), layout) if "%z" in layout else (f"{str(value).strip()} +0000", f"{layout} %z")
        )
        try:
            return to_text(datetime.strptime(stamp, layout))  # noqa: DTZ007 (the layout ends with a zone)
        except ValueError:
            return None
    raise BadConfig(f"as = {kind!r} is unknown. Use {', '.join(sorted(_CONVERSIONS))} or date:%Y-%m-%d.", value=kind)


def as_number(value: Any) -> float | int | None:
    """Return the first number of a text such as `54,5 m²`."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if _MACHINE.fullmatch(text := str(value)[:200].strip()):
        number = float(text)  # as programs write it: 50.061 is no 50,061
        return int(number) if number == int(number) else number
    found = _NUMBER.search(text)
    if found is None:
        return None
    amount = parse_price(found[0]).amount
    return None if amount is None else (int(amount) if amount == int(amount) else float(amount))


def as_iso(value: Any) -> str | None:
    """Return a time as `YYYY-MM-DD HH:MM:SS` in UTC; one without a zone is in UTC."""
    text = str(value).strip()[:60]
    moment = datetime.fromisoformat(text) if text[:4].isdigit() else parsedate_to_datetime(text)
    return to_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def as_epoch(value: Any) -> str:
    number = float(value)
    return to_text(datetime.fromtimestamp(number / 1_000 if number > 1e11 else number, UTC))


def as_text(value: Any) -> str:
    """Return text without tags."""
    return " ".join(unescape(_TAG.sub(" ", str(value)[: 4 * TEXT_MAX])).split())[:TEXT_MAX]


def _as_price(value: Any) -> float | int | None:
    if isinstance(value, int | float):
        return value
    amount = parse_price(str(value)).amount
    return None if amount is None else (int(amount) if amount == int(amount) else float(amount))


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "number": as_number,
    "price": _as_price,
    "currency": lambda value: parse_price(str(value)).currency,
    "iso": as_iso,
    "epoch": as_epoch,
    "text": as_text,
    "string": str,
    "bool": lambda value: str(value).strip().lower() in ("true", "1", "yes"),
}


def order_key(value: Any, kind: str) -> float | None:
    """Return a cursor's value as a number that grows with time."""
    try:
        if kind == "iso":
            moment = as_iso(value)
            return None if moment is None else from_text(moment).timestamp()
        return float(value)
    except (ValueError, OverflowError, TypeError):
        return None


def needed(module: str) -> Any:
    """Import a library of the extra `systems`."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise BadConfig(
            f"Connectors of this kind need {module}. Install it with: pip install 'penstock[systems]'", module=module
        ) from error

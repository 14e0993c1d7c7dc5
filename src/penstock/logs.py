"""Logs: each event of the engine is one line, JSON for programs and text for people, with no secret in it.

`attach` subscribes to an app's events and takes over the root logger, so that the program's own log lines look the same.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import msgspec

from penstock.config import LogConfig
from penstock.model.redaction import redacted, without_secrets
from penstock.model.times import iso_z
from penstock.runtime.events import EngineEvent, Events

TEXT_MAX = 4_000  # characters of one field; crawled text and tracebacks can be of any length
TRACEBACK_MAX = 20_000
ITEMS_MAX = 100  # of a list; the rest is left out
VERBOSE = "PENSTOCK_VERBOSE"  # set by `penstock run --verbose`, for its workers too

# What JSON leaves as it is and a terminal or a log viewer takes for a line break, an instruction, or a change of direction.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")  # half a character cannot be written as UTF-8
_BARE = re.compile(r"[\w@./:+-]{1,80}")  # a value that is shown without quotes
_COLOURS = {"DEBUG": "\033[2m", "INFO": "\033[32m", "WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"}
_PLAIN = "\033[0m"

_log = logging.getLogger("penstock")


def attach(events: Events, wanted: LogConfig, stream: TextIO | None = None) -> Callable[[], None]:
    """Starts logging to the stream (stderr); call what comes back to stop."""
    stream = stream or sys.stderr
    as_text = wanted.format == "text" or (wanted.format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        TextFormatter(colours=stream.isatty() and not os.environ.get("NO_COLOR"), verbose=bool(os.environ.get(VERBOSE)))
        if as_text
        else JsonFormatter()
    )
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(wanted.level.upper())
    leave = subscribe(events, level=wanted.level)

    def detach() -> None:
        leave()
        root.removeHandler(handler)
        root.setLevel(before)

    return detach


def subscribe(events: Events, *, level: str = "info") -> Callable[[], None]:
    """Pass events of this level and above to the logger `penstock`."""
    least = logging.getLevelNamesMapping()[level.upper()]
    if least <= logging.DEBUG:
        return events.subscribe(_tell)
    # Events of each message have the level debug: their text is not made unless that level is logged.
    kinds = [kind for kind in _kinds(EngineEvent) if logging.getLevelNamesMapping()[kind.level.upper()] >= least]
    leave = [events.subscribe(_tell, to=kind) for kind in kinds]

    def unsubscribe() -> None:
        for stop in leave:
            stop()

    return unsubscribe


def _kinds(kind: type[EngineEvent]) -> list[type[EngineEvent]]:
    below = [each for child in kind.__subclasses__() for each in (child, *_kinds(child))]
    return list(dict.fromkeys(below))


def _tell(event: EngineEvent) -> None:
    extra = {"facts": event.facts(), "line": event.line()}
    _log.log(logging.getLevelNamesMapping()[event.level.upper()], event.name, extra=extra)


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, event, logger, then the facts."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": iso_z(int(record.created * 1_000_000)), "level": record.levelname.lower(), **_fields(record)}
        line = msgspec.json.encode(fields, enc_hook=_word).decode()
        return _UNSAFE.sub(_escaped, line)


class TextFormatter(logging.Formatter):
    """`09:30:00 WARNING message.failed queue=orders attempt=2 error="..."`; a traceback follows, set in. A failure that
    has a line of its own shows only that, unless `verbose`."""

    def __init__(self, *, colours: bool = False, verbose: bool = False) -> None:
        super().__init__()
        self._colours = colours
        self._verbose = verbose

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        traceback = str(fields.pop("traceback", ""))
        said = _UNSAFE.sub(_escaped, str(fields.pop("event")))
        source = fields.pop("logger", None)
        facts = " ".join(f"{name}={_shown(value)}" for name, value in fields.items())
        if not self._verbose and (line := getattr(record, "line", None)) is not None:
            facts, traceback = _UNSAFE.sub(_escaped, redacted(line)), ""
        level = f"{record.levelname:<7}"
        if self._colours:
            level = f"{_COLOURS.get(record.levelname, '')}{level}{_PLAIN}"
        clock = iso_z(int(record.created * 1_000_000))[11:19]
        line = " ".join(filter(None, (clock, level, f"[{source}]" if source else "", said, facts)))
        return line + "".join(f"\n    | {_UNSAFE.sub(_escaped, each)}" for each in traceback.splitlines())


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    facts = getattr(record, "facts", None)
    fields: dict[str, Any] = {"event": _cut(redacted(record.getMessage()), TEXT_MAX)}
    if record.name != _log.name:
        fields["logger"] = record.name
    if isinstance(facts, Mapping):
        plain = without_secrets({name: _plain(value) for name, value in facts.items()})
        assert isinstance(plain, dict)
        # A fact may be called like one of our own fields; it must not pass for it.
        fields |= {f"fact_{name}" if name in _OWN else name: _shortened(value) for name, value in plain.items()}
    if record.exc_info and record.exc_info[0] is not None:
        text = logging.Formatter().formatException(record.exc_info)
        fields["traceback"] = redacted(text[-TRACEBACK_MAX:])  # its end says what went wrong
    return fields


_OWN = frozenset(("time", "level", "event", "logger"))


def _plain(value: object) -> object:
    """A settlement or another value as `{"kind": "again", ...}`."""
    if isinstance(value, msgspec.Struct):
        parts = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return {"kind": type(value).__name__.lower(), **parts}
    return value


def _shortened(value: object) -> object:
    match value:
        case str():
            return _cut(value, TEXT_MAX)
        case dict():
            return {_cut(name, TEXT_MAX): _shortened(each) for name, each in value.items()}
        case list():
            return [_shortened(each) for each in value[:ITEMS_MAX]]
        case bytes():
            return _word(value)
    return value


def _cut(text: str, most: int) -> str:
    whole = _HALVES.sub("\ufffd", text)
    return whole if len(whole) <= most else whole[:most] + f"... ({len(whole) - most} more)"


def _word(value: object) -> str:
    """What msgspec does not know is shown as Python shows it."""
    return _cut(redacted(repr(value)), TEXT_MAX)


def _shown(value: object) -> str:
    if isinstance(value, str):
        text = value if _BARE.fullmatch(value) else msgspec.json.encode(value).decode()
    else:
        text = msgspec.json.encode(value, enc_hook=_word).decode()
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"

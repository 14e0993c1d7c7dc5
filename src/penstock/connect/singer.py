"""A Singer tap as a connector: a local program that prints SCHEMA, RECORD and STATE lines."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any

from penstock.connect.fields import find_json, plain, read_field
from penstock.connect.page import Changed, Page, Record
from penstock.connect.spec import Field, Spec
from penstock.model.errors import Unavailable

LINE_BYTES_MAX = 1_000_000
RECORDS_A_PAGE = 500  # where a tap prints no state for long
ERROR_BYTES_MAX = 4_000


async def read_tap(spec: Spec, fields: Mapping[str, str | Field], cursor: str | None) -> AsyncIterator[Page]:
    """Run the tap without a shell, with its saved state in a file, and yield a page for each STATE line."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as state, tempfile.TemporaryFile() as errors:
        command = list(spec.command)
        if cursor is not None:
            state.write(cursor)
            state.flush()
            command += ["--state", state.name]
        try:
            tap = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:
            raise Unavailable(f"The tap {command[0]} cannot be started: {error.strerror}.") from error
        try:
            async for page in _pages(spec, fields, tap):
                yield page
            code = await tap.wait()
        finally:
            if tap.returncode is None:
                tap.kill()
                await tap.wait()
        if code != 0:
            errors.seek(max(0, errors.seek(0, 2) - ERROR_BYTES_MAX))
            tail = errors.read().decode("utf-8", "replace").strip().splitlines()
            raise Unavailable(f"The tap {command[0]} ended with exit code {code}: {tail[-1] if tail else 'no message'}")


async def _pages(spec: Spec, fields: Mapping[str, str | Field], tap: asyncio.subprocess.Process) -> AsyncIterator[Page]:
    records: dict[str, Record] = {}
    keys: dict[str, list[str]] = {}
    unreadable = 0
    assert tap.stdout is not None
    while True:
        try:
            line = await tap.stdout.readline()
        except ValueError as error:
            raise Changed(f"{spec.name} printed a line of more than {LINE_BYTES_MAX:,} bytes.") from error
        if not line:
            break
        message = _message(line)
        match message.get("type"):
            case "SCHEMA":
                keys[str(message.get("stream"))] = [str(each) for each in message.get("key_properties") or ()]
            case "RECORD":
                record = _record(spec, fields, message, keys)
                unreadable += record is None
                if record is not None:
                    records[record.id] = record
            case "STATE":
                yield Page(list(records.values()), json.dumps(message.get("value")), unreadable=unreadable)
                records, unreadable = {}, 0
        if len(records) >= RECORDS_A_PAGE:
            yield Page(list(records.values()), unreadable=unreadable)
            records, unreadable = {}, 0
    if records or unreadable:
        yield Page(list(records.values()), unreadable=unreadable)


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}  # taps print other things too
    return message if isinstance(message, dict) else {}


def _record(
    spec: Spec, fields: Mapping[str, str | Field], message: Mapping[str, Any], keys: Mapping[str, list[str]]
) -> Record | None:
    values = message.get("record")
    if not isinstance(values, dict):
        return None
    named = keys.get(str(message.get("stream"))) or [spec.id if isinstance(spec.id, str) else "id"]
    id = "/".join(str(values[key]) for key in named if values.get(key) is not None)
    if not id:
        return None
    data = {name: read_field(values, field, find_json) for name, field in fields.items()} if fields else plain(values)
    url = str(read_field(values, spec.url, find_json) or "") if spec.url else ""
    return Record(id[:300], data, url[:2_000], values, spec.name)

"""What a waiting run expects of a signal, recorded as a JSON schema, and why a payload does not fit it."""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA_BYTES_MAX = 16_000  # of a type that is checked before its signal is accepted; a larger one is checked by the run

_KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Expectation(msgspec.Struct):
    """Kept with the record of a wait until its signal comes."""

    signal: str
    schema: dict[str, Any] | None = None


def expect(signal: str, type: Any) -> bytes:
    """Encode what a wait for this signal takes. A type without a schema is checked by the run alone."""
    try:
        schema = None if type is None else msgspec.json.schema(type)
    except TypeError:
        schema = None
    body = msgspec.json.encode(Expectation(signal, schema))
    return body if len(body) <= SCHEMA_BYTES_MAX else msgspec.json.encode(Expectation(signal))


def signal_of(body: bytes) -> str:
    """Return the name of the signal that is waited for."""
    return msgspec.json.decode(body, type=Expectation).signal


def misfit(payload: bytes, schema: dict[str, Any]) -> str | None:
    """Return why the payload does not fit, naming the field; None if it fits."""
    return _misfit(msgspec.json.decode(payload), schema, schema.get("$defs", {}), "the payload")


def _misfit(value: Any, schema: dict[str, Any], defined: dict[str, Any], where: str) -> str | None:
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        found = [_misfit(value, each, defined, where) for each in schema["anyOf"]]
        return None if None in found else f"{where} fits none of: {'; '.join(map(str, found))}"
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return None if value in allowed else f"{where} is {value!r}, and must be one of {allowed}"
    kind = schema.get("type")
    if kind is None:
        return None
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return f"{where} is {msgspec.json.encode(value).decode()[:100]}, and must be of type {kind}"
    if kind == "object":
        return _object_misfit(value, schema, defined, where)
    items = schema.get("items")
    if kind == "array" and isinstance(items, dict):
        found = [_misfit(each, items, defined, f"item {at} of {where}") for at, each in enumerate(value)]
        return next((each for each in found if each is not None), None)
    return None


def _object_misfit(value: dict[str, Any], schema: dict[str, Any], defined: dict[str, Any], where: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where} lacks the field {name!r}"
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, each in value.items():
        if name not in fields and others is False:
            return f"{where} has an unknown field {name!r}"
        known = fields.get(name, others)
        if isinstance(known, dict) and (found := _misfit(each, known, defined, f"the field {name!r} of {where}")):
            return found
    return None

"""Forms: fields from a body of limited size, as browsers send them or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request

from penstock.model.errors import BadParameter
from penstock.model.strict_json import BadJson, parse
from penstock.web.intake import read_body

BYTES_MAX = 2_000_000  # of a form: the largest body of a message, and what encoding adds
FIELDS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Form:
    fields: list[tuple[str, str]]

    def text(self, name: str) -> str | None:
        """Return the last value of a field; None where it is missing or empty."""
        values = [value for field, value in self.fields if field == name]
        return values[-1] if values and values[-1].strip() else None

    def needed(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise BadParameter(f"The field {name} is missing.", field=name)
        return value

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field == name]

    def number(self, name: str, usual: int | None = None) -> int:
        text = self.text(name)
        if text is None and usual is not None:
            return usual
        if text is None or not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise BadParameter(f"The field {name} is {text!r}; write a whole number.", field=name)
        return int(text)


async def read_form(request: Request) -> Form:
    """Return the fields of a form, or of a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request, BYTES_MAX, is_json=kind == "application/json")
    if kind == "application/json":
        return Form(_of_json(body))
    try:
        text = body.decode()
        return Form(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"))
    except ValueError as error:
        raise BadParameter(f"The form cannot be read: {error}.") from error


def _of_json(body: bytes) -> list[tuple[str, str]]:
    try:
        value = parse(body)
    except BadJson as error:
        raise BadParameter(str(error)) from error
    if not isinstance(value, dict):
        raise BadParameter("Send one JSON object with the fields of the form.")
    return [
        (name, each if isinstance(each, str) else str(each))
        for name, given in value.items()
        for each in (given if isinstance(given, list) else [given])
    ]

"""An answer that came whole and in bounds, as bytes, text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from penstock.gateway.failures import excerpt_of
from penstock.model.errors import Unparsable

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,30})", re.IGNORECASE)
# The encodings that pages come in. Python knows others by name that unpack, or that take quadratic time.
_ENCODING = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|(us-?)?ascii|iso-?8859-\d\d?|latin-?1|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]|shift[_-]?jis"
    r"|euc-(jp|kr)|iso-2022-jp|gbk|gb2312|gb18030|big5(-hkscs)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Response:
    """What a host answered: always a 2xx, since everything else is an error."""

    status: int
    url: str  # after redirects, without secrets
    headers: Mapping[str, str]  # by name in any case
    body: bytes = field(repr=False)

    def text(self) -> str:
        """The body as text, in the encoding the server named or else UTF-8. What does not fit becomes `�`."""
        return text_of(self.body, self.headers.get("content-type", ""))

    def json(self) -> Any:
        """The body as JSON, whatever type the server called it."""
        try:
            return json.loads(self.body.decode("utf-8-sig"), parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise Unparsable(
                f"{self.url} answered with what is no JSON: {str(error)[:200]}.",
                reason="bad_json",
                status=self.status,
                url=self.url,
                excerpt=excerpt_of(self.text()),
            ) from error


def text_of(body: bytes, content_type: str) -> str:
    named = _CHARSET.search(content_type)
    encoding = named[1] if named and _ENCODING.fullmatch(named[1]) else "utf-8"
    try:
        text = body.decode(encoding, "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")

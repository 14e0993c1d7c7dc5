"""An answer that came whole and in bounds, as bytes, text or JSON, and the failures of those that did not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NoReturn

from penstock.model.errors import Gone, PenstockError, Refused, Throttled, Unavailable, Unparsable
from penstock.model.redaction import HIDDEN, is_secret, redacted
from penstock.model.times import from_micros

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,30})", re.IGNORECASE)
# The encodings that pages come in. Python knows others by name that unpack, or that take quadratic time.
_ENCODING = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|(us-?)?ascii|iso-?8859-\d\d?|latin-?1|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]|shift[_-]?jis"
    r"|euc-(jp|kr)|iso-2022-jp|gbk|gb2312|gb18030|big5(-hkscs)?",
    re.IGNORECASE,
)
SHOWN_CHARACTERS_MAX = 500  # of a URL or of a body: enough to recognise it

_USERINFO = re.compile(r"(?<=//)[^/?#]*@")
_PAIR = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")
_BOT = re.compile(r"(?<=/bot)\d+:[\w-]+")  # Telegram's token stands in the path
_TELLING = frozenset("key auth sig code session jwt apikey pass".split())


class Forbidden(Refused):
    """Our own rules forbid this call; `reason` is one word that says which rule."""

    reason: str
    url: str
    status: int | None = None  # of the redirect that led there


def failure_of(
    status: int, *, url: str, retry_after: float | None = None, excerpt: str = "", throttles: Set[int] = frozenset()
) -> PenstockError | None:
    """The error that a status stands for. `throttles` are those by which this host says "too fast", besides 429."""
    if 200 <= status < 300:
        return None
    facts: dict[str, Any] = {"status": status, "url": url, "excerpt": excerpt}
    what = f"{url} was answered with {status}."
    if status == 429 or status in throttles or (status == 503 and retry_after is not None):
        return Throttled(f"{what} Slow down.", retry_after=retry_after, **facts)
    if 500 <= status < 600 or status in (408, 425):
        return Unavailable(what, retry_after=retry_after, **facts)
    if status in (404, 410):
        return Gone(what, retry_after=None, **facts)
    if 400 <= status < 500:
        return Refused(what, retry_after=None, **facts)
    return Unparsable(what, retry_after=None, reason="bad_status", **facts)


def redacted_url(url: str) -> str:
    """The URL without who logs in, and without the values of parameters whose names tell a secret."""
    plain = _PAIR.sub(lambda pair: f"{pair[1]}={HIDDEN}" if _tells(pair[1]) else pair[0], _USERINFO.sub("", url, 1))
    return _BOT.sub(HIDDEN, plain)[:SHOWN_CHARACTERS_MAX]


def excerpt_of(text: str) -> str:
    # Cut to more than is kept before the search for secrets, so that a long body costs no time.
    return redacted(text[: 2 * SHOWN_CHARACTERS_MAX]).strip()[:SHOWN_CHARACTERS_MAX]


@lru_cache(512)  # every call asks, and mostly for the same few names
def _tells(name: str) -> bool:
    return is_secret(name) or bool(_TELLING & set(re.split(r"[\W_]+", name.lower())))


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
                f"{self.url} answered with invalid JSON: {str(error)[:200]}.",
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
    raise ValueError(f"{name} is not a number in JSON")


# -- Retry-After ------------------------------------------------------------------------------------------

SECONDS_LEAST = 1.0  # a server that always answers 0 would be called in a tight loop
SECONDS_MAX = 86_400.0  # who asks for more is asked again tomorrow
_CHARACTERS_MAX = 60

_SECONDS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?", re.ASCII)


def seconds_to_wait(header: str | None, *, now: int) -> float | None:
    """How long the server asks us to wait from `now` on, or None where it says nothing that can be read."""
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        # Any number of digits: a float has no limit to its text, and infinity is cut like a century.
        return _bounded(float(text))
    if not text or len(text) > _CHARACTERS_MAX:
        return None
    try:
        moment = parsedate_to_datetime(text)
        # A date without a zone is meant in UTC, as HTTP has it.
        until = moment.replace(tzinfo=from_micros(0).tzinfo) if moment.tzinfo is None else moment
        return _bounded((until - from_micros(now)).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, SECONDS_LEAST), SECONDS_MAX)

"""What an answer's status means: which failures wait, which are final, and what is told about them without secrets."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache
from typing import Any

from penstock.model.errors import Gone, PenstockError, Refused, Throttled, Unavailable, Unparsable
from penstock.model.redaction import HIDDEN, is_secret, redacted

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

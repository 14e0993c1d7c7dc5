"""robots.txt as RFC 9309 has it: the longest rule wins, no file means no rules, and a server that is down means "not now"."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

import httpx2

from penstock.contracts.clock import Clock
from penstock.model.errors import Gone, Refused, Throttled, Unavailable, Unparsable
from penstock.model.times import MICROS
from penstock.outbound.addresses import origin_of
from penstock.outbound.answers import Forbidden, Response, redacted_url

FILE_BYTES_MAX = 500 * 1024  # the least that has to be read; the rest is ignored
KEPT_SECONDS = 86_400  # the standard's limit
UNREACHABLE_SECONDS = 60  # before a host that is down is asked again
HOSTS_MAX = 256
PATTERN_CHARACTERS_MAX = 2_000

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PRODUCT = re.compile(r"[A-Za-z_-]+|\*")


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules for one product: patterns, each with whether it allows."""

    patterns: tuple[tuple[str, bool], ...] = ()

    def allow(self, path: str) -> bool:
        """Whether a path with its query may be fetched."""
        plain = _normal(path)
        if plain == "/robots.txt":
            return True
        found = [(len(pattern), allows) for pattern, allows in self.patterns if _matches(pattern, plain)]
        return max(found, default=(0, True))[1]


class Robots:
    """Fetches and keeps the files of at most 256 hosts, and refuses what they disallow."""

    def __init__(self, fetch: Callable[[str], Awaitable[Response]], *, product: str, clock: Clock) -> None:
        self._fetch = fetch
        self._product = product
        self._clock = clock
        self._known: dict[str, tuple[int, RobotRules | Unavailable]] = {}

    async def check(self, url: httpx2.URL) -> None:
        """Raises Forbidden if the host disallows the URL, and Unavailable while it cannot be asked."""
        origin = origin_of(url)
        until, rules = self._known.get(origin, (0, RobotRules()))
        if until <= self._clock.now():
            rules = await self._ask(str(url.copy_with(raw_path=b"/robots.txt")))
            kept = KEPT_SECONDS if isinstance(rules, RobotRules) else rules.retry_after or UNREACHABLE_SECONDS
            self._known.pop(origin, None)
            self._known[origin] = (self._clock.now() + round(kept * MICROS), rules)
            if len(self._known) > HOSTS_MAX:
                del self._known[next(iter(self._known))]
        if isinstance(rules, Unavailable):
            raise Unavailable(rules.message, **rules.facts)
        if not rules.allow(url.raw_path.decode("ascii")):
            shown = redacted_url(str(url))
            raise Forbidden(f"{shown} is disallowed by the robots.txt of its host.", reason="robots", url=shown)

    async def _ask(self, url: str) -> RobotRules | Unavailable:
        try:
            answer = await self._fetch(url)
        except Forbidden as error:
            if error.facts["reason"] == "too_many_redirects":
                return RobotRules()
            raise
        except (Gone, Refused):
            return RobotRules()
        except (Throttled, Unavailable, Unparsable) as error:
            return Unavailable(
                f"{url} cannot be fetched, so no page of its host is fetched for now: {error}",
                reason="robots_unreachable",
                url=url,
                retry_after=error.facts.get("retry_after"),
            )
        return parse_robots(answer.body, self._product)


def parse_robots(file: bytes, product: str) -> RobotRules:
    """Return the rules of a file for the product, else for all clients. Lines that cannot be read are skipped."""
    groups: dict[str, list[tuple[str, bool]]] = {}
    agents: list[str] = []
    agents_go_on = False
    for line in file[:FILE_BYTES_MAX].decode("utf-8-sig", "replace").splitlines():
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if colon and name == "user-agent":
            agents = agents if agents_go_on else []
            if token := _PRODUCT.match(value):
                agents.append(token[0].lower())
                groups.setdefault(token[0].lower(), [])
            agents_go_on = True
        elif colon and name in ("allow", "disallow"):
            agents_go_on = False
            # An empty value allows or disallows nothing.
            if value and len(value) <= PATTERN_CHARACTERS_MAX:
                for agent in agents:
                    groups[agent].append((_normal(value), name == "allow"))
    return RobotRules(tuple(groups.get(product_token(product), groups.get("*", []))))


def product_token(agent: str) -> str:
    """`penstock` in `Penstock/0.1 (+https://shop.example)`"""
    found = _PRODUCT.match(agent)
    return found[0].lower() if found else "*"


def _matches(pattern: str, path: str) -> bool:
    """`*` stands for anything, and a `$` at the end for the end. Linear, since the pattern is a stranger's."""
    first, *others = pattern.removesuffix("$").split("*")
    anchored = pattern.endswith("$")
    if not path.startswith(first):
        return False
    if not others:
        return not anchored or path == first
    at = len(first)
    last = others.pop() if anchored else ""
    for part in others:
        if (at := path.find(part, at)) < 0:
            return False
        at += len(part)
    return not anchored or (len(path) - len(last) >= at and path.endswith(last))


def _normal(path: str) -> str:
    """One spelling for one path: letters that need no escape are not escaped, all others are."""
    escaped = quote(path, safe="".join(map(chr, range(33, 127))))
    return _ESCAPE.sub(
        lambda code: char if (char := chr(int(code[1], 16))) in _UNRESERVED else code[0].upper(), escaped
    )

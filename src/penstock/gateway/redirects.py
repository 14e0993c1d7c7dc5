"""Where a redirect may lead: checked like the first address, never down to http, and with nothing secret for a new host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from penstock.gateway.addresses import Rules, check_port, origin_of
from penstock.gateway.failures import Forbidden, redacted_url
from penstock.model.errors import Unparsable

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Whatever else the caller set may be a credential.
_FOR_ANYBODY = frozenset({"accept", "accept-language", "user-agent"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it goes out, to an address that was checked."""

    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    content: bytes = b""


def followed(asked: Asked, *, status: int, locations: Sequence[str], rules: Rules) -> Asked:
    """The request that a redirect asks for, or Forbidden."""
    shown = redacted_url(str(asked.url))
    if len(locations) > 1:
        raise Forbidden(f"{shown} redirects to several places.", reason="bad_redirect", status=status, url=shown)
    if not any(locations):
        raise Unparsable(f"{shown} redirects to nowhere.", reason="bad_redirect", status=status, url=shown)
    check_port(locations[0])
    try:
        joined = asked.url.join(locations[0])
    except (httpx2.InvalidURL, ValueError) as error:
        raise Forbidden(f"{shown} redirects to what is no URL.", reason="bad_url", status=status, url=shown) from error
    url = rules.target(joined)
    if asked.url.scheme == "https" and url.scheme == "http":
        raise Forbidden(f"{shown} redirects from https to http.", reason="downgrade", status=status, url=shown)
    elsewhere = origin_of(url) != origin_of(asked.url)
    headers = {name: value for name, value in asked.headers.items() if not elsewhere or name.lower() in _FOR_ANYBODY}
    if status in (307, 308) or asked.method in ("GET", "HEAD"):
        if elsewhere and asked.content:
            raise Forbidden(
                f"{shown} redirects what was sent to another host.", reason="body_elsewhere", status=status, url=shown
            )
        return Asked(asked.method, url, headers, asked.content)
    return Asked("GET", url, {name: value for name, value in headers.items() if name.lower() != "content-type"})

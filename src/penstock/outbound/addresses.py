"""Which addresses may be called: public ones, spelled plainly, and the exceptions that the operator has named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

from penstock.model.errors import BadConfig
from penstock.outbound.answers import Forbidden, redacted_url

URL_CHARACTERS_MAX = 8_000  # what servers and proxies on the way take
NAME_CHARACTERS_MAX = 253

# Listed one by one: `is_private` and `is_global` of the standard library let several of these through.
_CLOSED_4 = [
    *map(
        IPv4Network,
        """
        0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
        192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
        203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
        168.63.129.16/32
        """.split(),  # the last answers for the metadata of a cloud from a public address
    )
]
# Of IPv6 only what is handed out for use in public. Mapped and translated IPv4 (::ffff:0:0/96, 64:ff9b::/96), local and
# multicast addresses lie outside; Teredo and other tunnels, 6to4 and documentation lie inside and are taken out.
_OPEN_6 = IPv6Network("2000::/3")
_CLOSED_6 = [*map(IPv6Network, "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3ffe::/16 3fff::/20".split())]
_ISATAP = {0x0000_5EFE, 0x0200_5EFE}  # an IPv4 address follows in the last 32 bits, whatever the network

_AUTHORITY = re.compile(r"\s*(?:[^:/?#]*:)?//([^/?#]*)")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Names that mean this machine or the network it stands in, whatever a name server says.
_NEAR = re.compile(r"(?:.+\.)?(?:localhost|localdomain|local|internal|intranet|lan|home\.arpa|onion)")


class Rules:
    """Where a client may go. `allow` lists exceptions such as `127.0.0.1:8787` or `backend:9000`; `deny` closes networks.

    An address that is allowed is allowed on that port. A name that is allowed may stand for any address.
    """

    def __init__(self, *, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self.allow = frozenset(_exception(entry) for entry in allow)
        try:
            self.deny = tuple(ip_network(network) for network in deny)
        except ValueError as error:
            raise BadConfig(f"`deny` lists networks such as 203.0.113.0/24. {error}.") from error

    def target(self, url: str | httpx2.URL) -> httpx2.URL:
        """The URL as it will be called, or Forbidden. Whatever calls it uses this value and parses nothing again."""
        if isinstance(url, str):
            check_port(url)
        try:
            parsed = httpx2.URL(url)
            port = port_of(parsed)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise _refusal(f"It cannot be read: {error}.", "bad_url", url) from error
        if parsed.scheme not in ("http", "https"):
            raise _refusal("Only http and https are allowed.", "bad_scheme", url)
        if parsed.userinfo or not 0 < port < 65_536 or len(str(parsed)) > URL_CHARACTERS_MAX:
            raise _refusal("It holds credentials, an impossible port, or too many characters.", "bad_url", url)
        named = parsed.raw_host.decode("ascii")
        host = named.removesuffix(".")
        if (host, port) not in self.allow and (why := self._blocked_host(host, port)):
            raise _refusal(why, "blocked_address", url)
        # A copy is parsed anew, and most need none.
        return parsed if host == named and not parsed.fragment else parsed.copy_with(host=host, fragment=None)

    def usable(self, host: str, port: int, answers: Sequence[str]) -> list[str]:
        """Those of a name's addresses that may be connected to, or Forbidden if there is none."""
        usable = [
            address for address in answers if (host, port) in self.allow or self._blocked_address(address, port) is None
        ]
        if answers and not usable:
            raise Forbidden(
                f"{host} stands for {answers[0]}, which is {self._blocked_address(answers[0], port)}, "
                f"and nothing else. If that is meant, allow `{host}:{port}`.",
                reason="blocked_address",
                url=host,
            )
        return usable

    def _blocked_host(self, host: str, port: int) -> str | None:
        if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
            # `0x7f.1`, `2130706433` and `127.1` are addresses too, to some. Only the plain form is one to us.
            blocked = self._blocked_address(host, port)
            return blocked and f"Its address is {blocked}."
        if len(host) > NAME_CHARACTERS_MAX or not _NAME.fullmatch(host) or _NEAR.fullmatch(host):
            return "Its host is not a public name."
        return None

    def _blocked_address(self, text: str, port: int) -> str | None:
        try:
            address = ip_address(text)
        except ValueError:
            return "not spelled as an address"
        if (str(address), port) in self.allow:
            return None
        if any(address in network for network in self.deny):
            return "in a network that is denied"
        return None if is_public(address) else "not public"


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_4)
    return (
        address.scope_id is None
        and address in _OPEN_6
        and not any(address in network for network in _CLOSED_6)
        and int(address) >> 32 & 0xFFFF_FFFF not in _ISATAP
    )


def check_port(url: str) -> None:
    """Raise Forbidden for a port that is not written in ASCII digits: `int` also takes ８０ and +80."""
    found = _AUTHORITY.match(url)
    port = found[1].rpartition("@")[2].rpartition("]")[2].partition(":")[2] if found else ""
    if port and not re.fullmatch("[0-9]+", port):
        raise _refusal("Its port is not a number.", "bad_url", url)


def port_of(url: httpx2.URL) -> int:
    return url.port if url.port is not None else 443 if url.scheme == "https" else 80


def origin_of(url: httpx2.URL) -> str:
    """`https://shop.example:443`: what decides whether two URLs belong to one owner."""
    return f"{url.scheme}://{url.raw_host.decode('ascii')}:{port_of(url)}"


def endpoint(entry: str) -> tuple[str, int]:
    """`127.0.0.1:8787`, `[::1]:8787` or `backend:9000` in parts."""
    host, _, port = entry.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port):
        raise BadConfig(f"{entry!r} is not a host and port such as 127.0.0.1:8787.", value=entry)
    return host.strip("[]").lower(), int(port)


def _exception(entry: str) -> tuple[str, int]:
    host, port = endpoint(entry)
    try:
        return str(ip_address(host)), port
    except ValueError:
        return host, port


def _refusal(why: str, reason: str, url: object) -> Forbidden:
    shown = redacted_url(str(url))
    return Forbidden(f"{shown!r} was not called. {why}", reason=reason, url=shown)

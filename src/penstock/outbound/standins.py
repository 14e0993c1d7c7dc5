"""Stand-ins: local servers that mimic outside services. An app names them; who runs it decides whether they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.errors import BadApp

if TYPE_CHECKING:
    from penstock.outbound.client import Client
    from penstock.outbound.mounts import Asgi

VARIABLE = "PENSTOCK_STANDINS"  # where they listen, in the order in which the app names them


class StandIn(NamedTuple):
    """`make` gives it as an ASGI app that goes by the clock it is given, in seconds; `module` is run as a program for one
    that listens on a port of its own, which it names in the first line it prints."""

    client: Client
    hosts: Sequence[str]
    make: Callable[[Callable[[], float]], Asgi]
    module: str


def mount(standins: Sequence[StandIn], now: Callable[[], float]) -> None:
    """In this process, as a test does it."""
    _check(standins)
    for each in standins:
        made = each.make(now)
        for host in each.hosts:
            each.client.mount(host, made)


def forward(standins: Sequence[StandIn], urls: Sequence[str]) -> None:
    """To servers that run already."""
    _check(standins)
    if len(urls) != len(standins):
        raise BadApp(f"{VARIABLE} names {len(urls)} fake servers, and the app declares {len(standins)}.")
    for each, url in zip(standins, urls, strict=True):
        for host in each.hosts:
            each.client.forward(host, url)


def _check(standins: Sequence[StandIn]) -> None:
    if not standins:
        raise BadApp("The app declares no fake servers. Remove `--standins`, or declare them with `app.stand_in(...)`.")

"""What a demonstration is made of, as the environment says it. A value that cannot be is refused with the way out."""

from __future__ import annotations

import os
from importlib import import_module

import penstock as ps
from penstock_systems.appstore.demo.course import Settings
from penstock_systems.standins.appstore import Catalogue

MARKETS = 40


def chosen() -> Settings:
    _check_libraries()
    settings = Settings(
        apps=round(_number("APPS", 3_000, least=100, most=100_000)),
        markets=MARKETS,
        seed=round(_number("SEED", 1, least=0, most=2**31)),
        days=_number("DAYS", 6, least=0.1, most=60),
        without=tuple(filter(None, os.environ.get("WITHOUT", "").split(","))),
        database=os.environ.get("PENSTOCK_DATABASE", ""),
    )
    try:
        catalogue_of(settings)
    except ValueError as error:
        raise SystemExit(f"demo: {error}") from error
    return settings


def catalogue_of(settings: Settings) -> Catalogue:
    return Catalogue(settings.apps, settings.markets, settings.seed, without=settings.without)


def _check_libraries() -> None:
    """Rather at once than by an empty list after six days."""
    try:
        import_module("penstock_systems.appstore.cluster.libraries")
    except ps.BadConfig as error:
        raise SystemExit(f"demo: {error}") from error


def _number(name: str, usual: float, *, least: float, most: float) -> float:
    given = os.environ.get(name) or str(usual)
    try:
        value = float(given)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise SystemExit(
            f"demo: {name}={given!r} is not a number from {least:g} to {most:,.0f}. The default is {usual:,}."
        )
    return value

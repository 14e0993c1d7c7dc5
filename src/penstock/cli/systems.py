"""The commands of systems: packages name them in their entry points, and they are imported only when asked for."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

import click

from penstock.model.errors import BadApp

GROUP = "penstock.commands"
# Those that come with Penstock, which are there even where the package's entry points are those of an older install.
SHIPPED = {"appstore": "penstock_systems.appstore.reading.commands:appstore"}

# Their apps, by the name that `penstock run` takes.
APPS = {"appstore": "penstock_systems.appstore.stages:app"}


def named() -> dict[str, str]:
    """Where each system's commands are, by name. Nothing is imported."""
    return SHIPPED | {each.name: each.value for each in entry_points(group=GROUP)}


def load(name: str) -> click.Command | None:
    """The command of that name, None if no system has one."""
    place = SHIPPED.get(name) or named().get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    try:
        command = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadApp(f"The commands of the system {name} cannot be loaded from {place}: {error}.") from error
    if not isinstance(command, click.Command):
        raise BadApp(f"{place} is no command, but the system {name} names it as its own.")
    return command

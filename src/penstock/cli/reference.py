"""Finds the app that `module:app`, `path/to/file.py:app` or the name of a system means, and the commands of systems."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from contextlib import redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import click

from penstock.app import App
from penstock.model.errors import BadApp, PenstockError
from penstock.services.service import Service

EXAMPLES = "Write `shop.py`, `shop.py:app`, `package.module:app`, or the name of a system such as `appstore`."
GROUP = "penstock.commands"
# The apps of systems, by the name that `penstock run` takes.
APPS = {
    "appstore": "penstock_systems.appstore.stages:app",
    "brand": "penstock_systems.brand.stages:app",
    "gateway": "penstock_systems.gateway.stages:app",
    "reminders": "penstock_systems.reminders.system:app",
    "rentals": "penstock_systems.rentals.system:app",
}
# Commands that come with Penstock, which are there even where the package's entry points are those of an older install.
SHIPPED = {
    "demo": "penstock_systems.demo:demo",
    "appstore": "penstock_systems.appstore.reading.commands:appstore",
    "brand": "penstock_systems.brand.commands:brand",
    "gateway": "penstock_systems.gateway.commands:gateway",
    "reminders": "penstock_systems.reminders.commands:reminders",
    "rentals": "penstock_systems.rentals.commands:rentals",
}


def load(reference: str) -> App:
    """Return the app. What its module prints while it is imported goes to stderr, so that stdout stays the command's."""
    place, _, attribute = APPS.get(reference, reference).partition(":")
    if not place:
        raise BadApp(f"{reference!r} names no app. {EXAMPLES}", reference=reference)
    module = load_module(place)
    return _named(module, place, attribute) if attribute else _only(module, place)


def load_module(place: str) -> ModuleType:
    with redirect_stdout(sys.stderr):
        return _file(Path(place)) if place.endswith(".py") or os.sep in place else _module(place)


def is_module(name: str) -> bool:
    """Return whether there is a package or a module of that name; it is not imported."""
    top = name.partition(".")[0]
    if top in sys.modules or Path(top).is_dir() or Path(f"{top}.py").is_file():
        return True
    return importlib.util.find_spec(top) is not None


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise BadApp(f"The file {path} {what}. {EXAMPLES}", path=str(path))
    if path.stem in sys.modules or not path.stem.isidentifier():
        name = f"penstock_app_{''.join(c if c.isalnum() else '_' for c in path.stem)}"
    else:
        name = path.stem
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise BadApp(f"{path} is not a Python file. {EXAMPLES}", path=str(path))
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from error
    return module


def _module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise _broken(name, error) from error
        near = f" Did you mean {name}.py?" if Path(f"{name}.py").is_file() else ""
        raise BadApp(
            f"There is no module {missing!r} in {os.getcwd()} or among the installed packages.{near} {EXAMPLES}",
            module=name,
        ) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> PenstockError:
    """Return an error that names the line of the user's code."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, SystemExit):
        return BadApp(f"{name} ends the program when it is imported. Put what runs under `if __name__ == '__main__':`.")
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in lines if "/penstock/" not in frame.filename.replace(os.sep, "/")]
    if isinstance(error, SyntaxError):
        where = f" ({error.filename}, line {error.lineno})"
    else:
        where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return BadApp(f"{name} cannot be imported: {type(error).__name__}: {error}{where}.", reference=name)


def _apps(module: ModuleType) -> dict[str, App]:
    named: dict[int, tuple[str, App]] = {}
    for name, value in vars(module).items():
        if isinstance(value, App) and not isinstance(value, Service):
            named.setdefault(id(value), (name, value))
    return dict(named.values())


def _only(module: ModuleType, place: str) -> App:
    apps = _apps(module)
    if not apps:
        raise BadApp(f"{place} has no app. Create one at its top level: `app = penstock.App('shop')`.", reference=place)
    if len(apps) > 1:
        raise BadApp(
            f"{place} has several apps: {', '.join(apps)}. Name one: `{place}:{next(iter(apps))}`.", reference=place
        )
    return next(iter(apps.values()))


def _named(module: ModuleType, place: str, attribute: str) -> App:
    value = getattr(module, attribute, None)
    if isinstance(value, App):
        return value
    apps = _apps(module)
    found = f"It has: {', '.join(apps)}." if apps else "It has none: `app = penstock.App('shop')` creates one."
    what = f"is a {type(value).__name__}, not an app" if hasattr(module, attribute) else "does not exist"
    raise BadApp(f"{place}:{attribute} {what}. {found}", reference=f"{place}:{attribute}")


# -- the commands of systems --------------------------------------------------------------------------------


def system_commands() -> dict[str, str]:
    """Return where each system's commands are, by name. Nothing is imported."""
    return SHIPPED | {each.name: each.value for each in entry_points(group=GROUP)}


def load_command(name: str) -> click.Command | None:
    """Return the command of that name, None if no system has one."""
    place = SHIPPED.get(name) or system_commands().get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    try:
        command = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadApp(f"The commands of the system {name} cannot be loaded from {place}: {error}.") from error
    if not isinstance(command, click.Command):
        raise BadApp(f"{place} is not a command, but the system {name} names it as one.")
    return command

"""Finds the app that `module:app` or `path/to/file.py:app` names, and says plainly why there is none.

`python -m penstock.cli.reference REF` tries it out in a process of its own: a supervisor runs no user code.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import subprocess
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import msgspec

from penstock.app import App
from penstock.cli import systems
from penstock.cli.output import INTERRUPTED, Output, Told, exit_code
from penstock.model.errors import BadApp, PenstockError
from penstock.model.redaction import address_shown
from penstock.runtime.supervisor import uninterrupted

EXAMPLES = "Write `shop.py`, `shop.py:app`, `package.module:app`, or the name of a system such as `appstore`."


class Found(msgspec.Struct, frozen=True):
    """What there is to know about an app without running it."""

    name: str
    database: str
    standins: list[str]  # the modules that can stand in for what is outside
    awaits_trial: bool  # none has passed, and it requires one


def load(reference: str) -> App:
    """The app. What its module prints while it is imported goes to stderr, so that stdout stays the command's own."""
    place, _, attribute = systems.APPS.get(reference, reference).partition(":")
    if not place:
        raise BadApp(f"{reference!r} names no app. {EXAMPLES}", reference=reference)
    module = load_module(place)
    return _named(module, place, attribute) if attribute else _only(module, place)


def load_module(place: str) -> ModuleType:
    with redirect_stdout(sys.stderr):
        return _file(Path(place)) if place.endswith(".py") or os.sep in place else _module(place)


def try_out(reference: str) -> Found:
    """Loads the app, opens its database, applies what is pending and closes it again, all in a process of its own. What
    is wrong with any of that is told here, once, and not by every worker that would start."""
    with uninterrupted():
        asked = subprocess.Popen([sys.executable, "-m", "penstock.cli.reference", reference], stdout=subprocess.PIPE)
    try:
        said, _ = asked.communicate()
    except BaseException:
        asked.kill()
        raise
    try:
        answer = msgspec.json.decode(said)
    except msgspec.DecodeError:
        raise BadApp(f"Importing {reference} ended Python with exit code {asked.returncode}.") from None
    if "error" in answer:
        error = answer["error"]
        raise Told(error["message"], code=error["code"], hint=error["hint"], exit_code=asked.returncode)
    return msgspec.convert(answer, Found)


def is_module(name: str) -> bool:
    """Whether there is a package or a module of that name; it is not imported."""
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
        raise BadApp(f"{path} is no Python file. {EXAMPLES}", path=str(path))
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
    """The user's own error, with the user's own line."""
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
        if isinstance(value, App):
            named.setdefault(id(value), (name, value))
    return dict(named.values())


def _only(module: ModuleType, place: str) -> App:
    apps = _apps(module)
    if not apps:
        raise BadApp(f"{place} has no app. Make one at its top level: `app = penstock.App('shop')`.", reference=place)
    if len(apps) > 1:
        raise BadApp(
            f"{place} has several apps: {', '.join(apps)}. Say which: `{place}:{next(iter(apps))}`.", reference=place
        )
    return next(iter(apps.values()))


def _named(module: ModuleType, place: str, attribute: str) -> App:
    value = getattr(module, attribute, None)
    if isinstance(value, App):
        return value
    apps = _apps(module)
    found = f"It has: {', '.join(apps)}." if apps else "It has none: `app = penstock.App('shop')` makes one."
    what = f"is a {type(value).__name__}, not an app" if hasattr(module, attribute) else "does not exist"
    raise BadApp(f"{place}:{attribute} {what}. {found}", reference=f"{place}:{attribute}")


async def _open_once(app: App) -> bool:
    """Whether it waits for a trial."""
    async with app:
        return app.requires_trial and not await app.trial.has_passed()


def main() -> int:
    output = Output(json=True, err=sys.stdout)
    try:
        app = load(sys.argv[1])
        with redirect_stdout(sys.stderr):
            awaits_trial = asyncio.run(_open_once(app))
    except PenstockError as error:
        return output.fail(error, exit_code(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    modules = [each.module for each in app.standins]
    output.show(Found(app.name, address_shown(app.database), modules, awaits_trial), lambda _: None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

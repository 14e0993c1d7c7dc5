"""What every store checks when it is opened: the version of the engine's schema, and the setting `synchronous`."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.errors import BadConfig, SchemaTooNew, SchemaTooOld

VERSION = 6
OLDEST_READ = 1


def check(found: int, location: str) -> None:
    if found > VERSION:
        raise SchemaTooNew(
            f"{location} has schema {found}; this Penstock knows {VERSION}. Upgrade Penstock; nothing was changed.",
            found=found,
            known=VERSION,
        )
    if 0 < found < OLDEST_READ:
        raise SchemaTooOld(
            f"{location} has schema {found}; this Penstock reads {OLDEST_READ} to {VERSION}. Upgrade in smaller steps.",
            found=found,
            known=VERSION,
        )


def check_synchronous(given: str, known: Iterable[str]) -> None:
    if given not in known:
        problem = f"synchronous is {given!r}; it can be {', '.join(known)}."
        raise BadConfig(problem, field="synchronous", value=given)

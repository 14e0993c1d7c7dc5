"""The version of the engine's schema, the same for every database, and which versions this Penstock can work with."""

from __future__ import annotations

from penstock.model.errors import SchemaTooNew, SchemaTooOld

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

"""What was last written of each app, so that it is not written again. An app comes up in hundreds of searches a day, and says
the same each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

import msgspec

from penstock_systems.appstore.app import app
from penstock_systems.appstore.store.facts import Found

APPS_MAX = 20_000  # remembered; those that were written first are forgotten first


class Written:
    """Lives as long as the database is open here: whoever opens another knows nothing of it."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[str, Found]] = {}

    def news(self, apps: Sequence[Found], *, known: set[int], now: str) -> list[Found]:
        """Those of which there is something to write. `known` are those that the registry has."""
        return [
            each for each in apps if each.track_id not in known or self._last.get(each.track_id) != _gist(each, now)
        ]

    def saved(self, apps: Sequence[Found], *, now: str) -> None:
        """What was written of them is committed."""
        for each in apps:
            self._last.pop(each.track_id, None)
            self._last[each.track_id] = _gist(each, now)
        while len(self._last) > APPS_MAX:
            del self._last[next(iter(self._last))]

    def forget(self, track_ids: Iterable[int]) -> None:
        """The registry may no longer say of them what was written last."""
        for track_id in track_ids:
            self._last.pop(track_id, None)


_of: WeakKeyDictionary[object, Written] = WeakKeyDictionary()


async def written() -> Written:
    return _of.setdefault(await app._opened(), Written())


def _gist(found: Found, now: str) -> tuple[str, Found]:
    """With its day: that an app was seen is written once a day."""
    return now[:10], msgspec.structs.replace(found, rank=None)

"""Noise: what a search brings along that nobody asked for. Apps everybody knows, neighbours, others of the same brand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import Draws
from penstock_systems.standins.appstore.genres import APP_STORE

NOISE_SHARE = 0.2  # of the results
FAMOUS = 300  # apps that turn up wherever there is room
NEIGHBOURS = 200  # of a market next door that can turn up


class Noise:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def between(self, hits: Sequence[int], seeded: int) -> Iterator[int]:
        """The hits with noise between them. The first place is never taken from whom it belongs to."""
        found, draws = set(hits), Draws(seeded)
        for index in hits:
            yield index
            while draws.share() < NOISE_SHARE:
                noise = self._noise(index, draws)
                if noise not in found and self._catalogue.exists(noise):
                    found.add(noise)
                    yield noise

    def _noise(self, index: int, draws: Draws) -> int:
        kind, luck = draws.share(), draws.share()
        if kind < 0.15:
            near = self._catalogue.place(index)[0].near
            market = self._catalogue.fields[draws.pick(near)] if near else None
            if market is not None and market.apps:
                return self._catalogue.at(market, int(min(market.apps, NEIGHBOURS) * luck**2))
        if kind < 0.35:
            others = self._catalogue.portfolio(self._catalogue.developer(index))
            if len(others) > 1:
                return others[int(len(others) * luck)]
        return self._famous[int(len(self._famous) * luck**2)]

    @cached_property
    def _famous(self) -> list[int]:
        return list(islice(self._catalogue.popular(APP_STORE, 0.1), FAMOUS)) or [0]

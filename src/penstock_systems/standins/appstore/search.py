"""Search: words find markets, patterns of titles and brands; what is asked for and popular comes first, and some noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from penstock_systems.standins.appstore.catalogue import ASIDE, PATTERNS, STEP, Catalogue
from penstock_systems.standins.appstore.chance import coded, mix
from penstock_systems.standins.appstore.markets import Market
from penstock_systems.standins.appstore.noise import Noise
from penstock_systems.standins.appstore.words import KEYWORDS, MODIFIERS, TRANSLATIONS, singular, words_of

RESULTS_MAX = 200
HITS_MAX = 400  # kept for one term, so that those gone or not sold can be passed over
MARKETS_MAX = 12  # that one term is looked up in
HEAD = 40  # apps of a market that are found by its topic alone
BESIDE, MODIFIED = (
    10,
    4,
)  # apps of one pattern that are looked at when it is not quite, or only half, what was asked for
TERMS_KEPT = 2_048
WANTED_KEPT = 1_024
BRAND_BONUS = 10.0  # who names the brand wants that one,
SAME_BRAND = 2.0  # and the brand's other apps rather than others
COMPETED = 2  # apps of a brand whose competitors are shown
TERM_WORDS_MAX = 12
TASTE = 1.4  # between the best and the worst luck that an app can have with a term
STRAYS = 2  # apps of each neighbouring market that are found by a word in their title

_MASK = (1 << 64) - 1
_MODIFIERS = len(MODIFIERS)


class Search:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for market in catalogue.fields:
            for place, keyword in enumerate(market.keywords if catalogue.here(market) and market.apps else ()):
                self._known[singular(keyword)].append((market.number, place))
        self._modifiers = {singular(word): place for place, word in enumerate(MODIFIERS)}
        for words in TRANSLATIONS:
            self._modifiers |= {singular(word.casefold()): place for place, word in enumerate(words)}
        self._noise = Noise(catalogue)
        self._hits = lru_cache(TERMS_KEPT)(self._find)

    def ranked(self, term: str, day: int, country: str, limit: int = RESULTS_MAX) -> list[int]:
        """The apps for a term, the first rank first; none if no word of it is known."""
        known = " ".join(words_of(term)[:TERM_WORDS_MAX])
        found = self._noise.between(self._hits(known), mix(self._catalogue.seed, 51, coded(known)))
        return list(islice((index for index in found if self._catalogue.sold(index, day, country)), limit))

    def _find(self, term: str) -> tuple[int, ...]:
        words, seeded = term.split(), mix(self._catalogue.seed, 50, coded(term))
        modifiers = {self._modifiers[word] for word in words if word in self._modifiers}
        asked: dict[int, set[int]] = defaultdict(set)
        for word in words:
            for number, keyword in self._known.get(word, ()):
                asked[number].add(keyword)
        named = [developer for developer in map(self._catalogue.branded, words) if developer is not None]
        own = [self._catalogue.place(index) for developer in named for index in self._catalogue.portfolio(developer)]
        spoken = bool(asked)
        if not spoken:
            # Who asks for a brand is shown what competes with it as well.
            for market, position in sorted(own, key=lambda place: -place[0].pull(place[1]))[:COMPETED]:
                asked[market.number].add(self._catalogue.pattern(market, position)[0])
        scores: dict[int, float] = {}
        for market in self._markets(asked, modifiers):
            keywords = asked.get(market.number, set())
            for keyword in keywords:
                for other, positions in self._catalogue.strays(market, keyword):
                    if positions:
                        theirs = asked.get(other.number, set())
                        self._score(other, positions[:STRAYS], theirs, modifiers, seeded, scores, 2.5)
            self._score(market, self._candidates(market, keywords, modifiers), keywords, modifiers, seeded, scores)
        for market, position in own:
            keywords = asked.get(market.number, set())
            meant = not spoken or self._catalogue.pattern(market, position)[0] in keywords
            self._score(market, (position,), keywords, modifiers, seeded, scores, BRAND_BONUS if meant else SAME_BRAND)
        # By score, and those with the same by their numbers: sorting leaves equal ones in their order.
        return tuple(sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:HITS_MAX])

    def _score(
        self,
        market: Market,
        positions: Iterable[int],
        keywords: set[int],
        modifiers: set[int],
        seeded: int,
        scores: dict[int, float],
        bonus: float = 0.0,
    ) -> None:
        catalogue = self._catalogue
        turn, pulls = catalogue.turn(market), catalogue.pulls(market)
        item, start, pulled = catalogue.slots.item, market.start, len(pulls)
        wanted = _wanted(frozenset(keywords), bonus)
        for position in positions:
            keyword, modifier = divmod((position * STEP + turn) % PATTERNS, _MODIFIERS)
            pull = pulls[position] if position < pulled else market.pull(position)
            index = item(start + position)
            luck = ((seeded ^ index * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & _MASK) / _MASK - 0.5
            scores[index] = wanted[keyword] + 2.0 * (modifier in modifiers) + 0.35 * pull + TASTE * luck

    def _markets(self, asked: dict[int, set[int]], modifiers: set[int]) -> list[Market]:
        fields = self._catalogue.fields
        numbers = asked or ([market.number for market in self._catalogue.markets if market.apps] if modifiers else [])
        best = sorted(numbers, key=lambda number: (-len(asked.get(number, ())), -fields[number].heat, number))
        return [fields[number] for number in best[:MARKETS_MAX]]

    def _candidates(self, market: Market, keywords: set[int], modifiers: set[int]) -> set[int]:
        """Positions that are worth a look: the leaders, those with the keyword in the title or in mind, and exact ones."""
        found: set[int] = set()
        titled, positions = self._catalogue.titled(market), self._catalogue.positions
        for keyword in keywords:
            found.update(range(min(HEAD, market.apps)), titled[keyword])
            for beside in ((keyword - step) % KEYWORDS for step in ASIDE):
                found.update(titled[beside][:_MODIFIERS])
                for modifier in modifiers:
                    found.update(positions(market, beside, modifier)[:BESIDE])
            for modifier in modifiers:
                found.update(positions(market, keyword, modifier)[:RESULTS_MAX])
        if not keywords:
            for keyword in range(KEYWORDS):
                for modifier in modifiers:
                    found.update(positions(market, keyword, modifier)[:MODIFIED])
        return {position for position in found if position < market.apps}


@lru_cache(WANTED_KEPT)
def _wanted(keywords: frozenset[int], bonus: float) -> list[float]:
    """What each keyword in a title is worth to somebody who asks for these."""
    beside = {(keyword - step) % KEYWORDS for keyword in keywords for step in ASIDE}
    return [
        bonus + 1.5 * len(keywords) + 2.0 * (keyword in keywords) + 1.5 * (keyword in beside)
        for keyword in range(KEYWORDS)
    ]

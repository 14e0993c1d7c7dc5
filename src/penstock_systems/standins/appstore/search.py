"""Search: words find markets, patterns of titles and brands; what is asked for and popular comes first."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from itertools import islice, product

from penstock_systems.standins.appstore.catalogue import PATTERNS, Catalogue, Market
from penstock_systems.standins.appstore.chance import bell, coded
from penstock_systems.standins.appstore.words import KEYWORDS, MODIFIERS, TRANSLATIONS, singular, words_of

RESULTS_MAX = 200
HITS_MAX = 400  # kept for one term, so that those gone or not sold can be passed over
MARKETS_MAX = 12  # that one term is looked up in
HEAD = 60  # apps of a market that are found by its topic alone
DEPTH = 8 * PATTERNS  # positions of a market that are looked through for one word
TERMS_KEPT = 2_048
BRAND_BONUS = 10.0  # who names the brand wants that one
TERM_WORDS_MAX = 12


class Search:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[str, set[int]] = defaultdict(set)
        for market in catalogue.fields:
            for keyword in market.keywords:
                self._known[singular(keyword)].add(market.number)
        self._modifiers = {singular(word): place for place, word in enumerate(MODIFIERS)}
        for words in TRANSLATIONS:
            self._modifiers |= {singular(word.casefold()): place for place, word in enumerate(words)}
        self._hits = lru_cache(TERMS_KEPT)(self._find)

    def ranked(self, term: str, day: int, country: str) -> list[int]:
        """The apps for a term, the first rank first; none if no word of it is known."""
        hits = self._hits(" ".join(words_of(term)[:TERM_WORDS_MAX]))
        return list(islice((index for index in hits if self._catalogue.sold(index, day, country)), RESULTS_MAX))

    def _find(self, term: str) -> tuple[int, ...]:
        words = term.split()
        matched = Counter(number for word in set(words) for number in self._known.get(word, ()))
        modifiers = {self._modifiers[word] for word in words if word in self._modifiers}
        scores: dict[int, float] = {}
        for market in self._markets(matched, modifiers):
            keywords = _asked_for(market, words)
            for position in self._positions(market, keywords, modifiers):
                index = self._catalogue.at(market, position)
                scores[index] = (
                    self._score(index, market, position, keywords, modifiers, term) + 1.5 * matched[market.number]
                )
        for developer in map(self._catalogue.branded, words):
            for index in self._catalogue.portfolio(developer) if developer is not None else ():
                market, position = self._catalogue.place(index)
                score = self._score(index, market, position, _asked_for(market, words), modifiers, term)
                scores[index] = score + 1.5 * matched[market.number] + BRAND_BONUS
        return tuple(sorted(scores, key=lambda index: (-scores[index], index))[:HITS_MAX])

    def _score(
        self, index: int, market: Market, position: int, keywords: set[int], modifiers: set[int], term: str
    ) -> float:
        keyword, modifier = self._catalogue.pattern(market, position)
        taste = 0.4 * bell(self._catalogue.seed, 50, index, coded(term))
        return 2.0 * (keyword in keywords) + 2.0 * (modifier in modifiers) + 0.35 * market.pull(position) + taste

    def _markets(self, matched: Counter[int], modifiers: set[int]) -> list[Market]:
        fields = self._catalogue.fields
        numbers = matched or ([market.number for market in self._catalogue.markets] if modifiers else [])
        best = sorted(numbers, key=lambda number: (-matched[number], -fields[number].heat, number))
        return [fields[number] for number in best[:MARKETS_MAX] if fields[number].apps]

    def _positions(self, market: Market, keywords: set[int], modifiers: set[int]) -> set[int]:
        found = set(range(min(HEAD, market.apps))) if keywords else set()
        for keyword, modifier in product(keywords or range(KEYWORDS), modifiers):
            found.update(self._catalogue.positions(market, keyword, modifier)[:RESULTS_MAX])
        for keyword, modifier in product(keywords, range(len(MODIFIERS))):
            found.update(self._catalogue.positions(market, keyword, modifier)[: DEPTH // PATTERNS])
        return found


def _asked_for(market: Market, words: list[str]) -> set[int]:
    return {place for place, keyword in enumerate(market.keywords) if singular(keyword) in words}

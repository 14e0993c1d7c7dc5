"""Tips for somebody who would build here, and a plan for the first quarter: sentences around figures of this market."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock_systems.appstore.opportunity.case import Verdict
from penstock_systems.appstore.opportunity.facts import KeywordFacts, MarketFacts, priced
from penstock_systems.appstore.opportunity.methods import MethodScore

METHODS_PLANNED = 3
LETTERS_UNKNOWN = 99  # more than any keyword has
PRICED_MANY = 3  # visible apps that have to cost something before that is called usual


def tips(facts: MarketFacts) -> list[str]:
    """The most useful first; at least one."""
    found = [
        _of_keywords(facts),
        _of_weak_leader(facts),
        _of_complaints(facts),
        _of_price(facts),
        _of_neighbours(facts),
    ]
    if facts.concept:
        found.append(f"The design agent would begin with this: {facts.concept}.")
    told = [tip for tip in found if tip is not None]
    return told or [
        f"Little is known of {facts.name} yet: {facts.apps_count:,} apps and {facts.keywords_count:,} keywords."
    ]


def _of_keywords(facts: MarketFacts) -> str | None:
    """Keywords that say different things: those that the store completes early, then the most wanted."""
    known = sorted(
        (word for word in facts.keywords if word.typed or (word.typed is None and word.demand is not None)),
        key=lambda word: (word.typed or LETTERS_UNKNOWN, -(word.demand or 0), word.keyword),
    )
    if not known:
        return None
    first = f'Put "{known[0].keyword}" into the title: {_wanted(known[0])}.'
    said = set(known[0].keyword.split())
    second = next((each for each in known if not said & set(each.keyword.split())), None)
    return first if second is None else f'{first} Then "{second.keyword}" into the subtitle: {_wanted(second)}.'


def _wanted(word: KeywordFacts) -> str:
    if word.typed:
        return f"the store completes it after {word.typed} letter{'s' if word.typed > 1 else ''}"
    return f"its demand is {word.demand:.0f} of 100"


def _of_weak_leader(facts: MarketFacts) -> str | None:
    weak = max(facts.weak, key=lambda app: (app.ratings, -app.track_id), default=None)
    if weak is None or weak.stars is None:
        return None
    return f"Measure yourself by {weak.name}: {weak.ratings:,} people rated it, with {weak.stars:.1f} stars."


def _of_complaints(facts: MarketFacts) -> str | None:
    if not facts.complaints or not facts.unhappy:
        return None
    listed = ", ".join(f'"{each.term}"' for each in facts.complaints)
    return f"Solve first what users miss: many of {facts.unhappy} unhappy reviews speak of {listed}."


def _of_price(facts: MarketFacts) -> str | None:
    known = [app.price for app in facts.visible if app.price is not None]
    paid = [price for price in known if price > 0]
    if len(paid) >= PRICED_MANY:
        usual = priced([(app.price or 0.0, app.shown_price) for app in facts.visible if app.price])
        return f"A price is usual: {len(paid)} of {len(known)} visible apps cost something, {usual} at the median."
    if len(known) >= PRICED_MANY and not paid:
        return f"All {len(known)} visible apps are free to download, so earn inside the app."
    return None


def _of_neighbours(facts: MarketFacts) -> str | None:
    if not facts.neighbours:
        return None
    return f"The same users search for {facts.neighbours[0].lower()}: appear in that search too."


def playbook(
    facts: MarketFacts, verdict: Verdict, methods: Sequence[MethodScore], names: Mapping[str, str], told: Sequence[str]
) -> str:
    """A plan in plain text. `names` are those of the methods."""
    chosen = methods[:METHODS_PLANNED]
    lines = [
        f"Playbook for {facts.name}",
        "",
        f"Verdict: {verdict}, {facts.score:.0f} of 100. Demand {facts.demand:.0f}, difficulty "
        f"{facts.competitiveness:.0f} of 100.",
        "",
    ]
    for month, method in enumerate(chosen, 1):
        lines.append(f"Month {month}: {names.get(method.method_id, method.method_id)} ({method.score:.0f} of 100)")
        lines.append(f"  Why: {method.reason}")
    lines += ["", "From the first day:"]
    lines += [f"  - {tip}" for tip in told]
    lines += ["", "If none of these has brought users after a quarter, stop and reconsider."]
    return "\n".join(lines)

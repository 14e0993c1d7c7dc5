"""What a card says of an opportunity, from the facts of its evaluation: the need, the gap, rivals, quotes, keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock_systems.appstore.opportunity.facts import priced
from penstock_systems.appstore.reading.facts import Named, Point, Quote, Rival, Titled, Typed
from penstock_systems.appstore.reading.shown import calm, number

RIVALS, QUOTES, KEYWORDS = 5, 3, 10
LETTERS_UNKNOWN = 99  # more than any keyword has
NAME_MOST, LINE_MOST = 120, 600  # characters
SAFE_URL = "https://"
DAYS_A_YEAR = 365
PRICED_MANY = 3  # of the visible apps cost something before a price is called usual
PARTS = (("demand", "demand"), ("competitiveness", "ease"), ("dissatisfaction", "unhappy users"), ("room", "room"))


class Told(NamedTuple):
    need: str
    gap: str
    price: str
    parts: list[Titled]
    favour: list[Point]
    against: Point | None
    rivals: list[Rival]
    quotes: list[Quote]
    keywords: list[Typed]


def told(facts: Mapping[str, Any], *, links: bool) -> Told:
    """Of an evaluation of an earlier version only what it kept."""
    apps = _listed(facts, "strongest") or _listed(facts, "apps")
    against = facts.get("against")
    quotes = [_quote(each) for each in _listed(facts, "complaints")[:QUOTES]]
    named = {f"app:{each.get('track_id')}": each for each in apps}
    return Told(
        need=_need(facts, quotes),
        gap=_gap(facts),
        price=_price(_listed(facts, "apps")),
        parts=_parts(facts),
        favour=[_point(each, named, links) for each in _listed(facts, "favour")],
        against=_point(against, named, links) if isinstance(against, dict) else None,
        rivals=_rivals(apps, _listed(facts, "beat"), links),
        quotes=quotes,
        keywords=[_typed(each) for each in _by_typing(facts)[:KEYWORDS]],
    )


def safe_url(url: object, links: bool) -> str | None:
    """An address that a browser may follow safely; none for apps that are made up."""
    plain = calm(url or "")
    return plain if links and plain.startswith(SAFE_URL) and len(plain) <= LINE_MOST else None


def _by_typing(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The keywords that the store completes early come first."""
    return sorted(_listed(facts, "keywords"), key=lambda each: each.get("typed") or LETTERS_UNKNOWN)


def _need(facts: Mapping[str, Any], quotes: Sequence[Quote]) -> str:
    """What users look for, and what they miss."""
    words = [calm(each["keyword"], NAME_MOST) for each in _by_typing(facts)]
    looked_for = " and ".join(f"“{word}”" for word in words[:2])
    if not looked_for:
        return ""
    if not quotes:
        return f"Users look for {looked_for}."
    missed = " and ".join(f"“{each.term}”" for each in quotes[:2])
    return f"Users look for {looked_for}. Those who are unhappy with what they find complain most about {missed}."


def _gap(facts: Mapping[str, Any]) -> str:
    """What the existing apps leave open."""
    figures = facts.get("figures") if isinstance(facts.get("figures"), dict) else {}
    assert isinstance(figures, dict)
    parts = []
    if figures.get("stars"):
        parts.append(f"the ten most rated apps have {figures['stars']:.1f} stars on average")
    if figures.get("leaders_abandoned"):
        many, known = figures["leaders_abandoned"], figures["leaders_known"]
        parts.append(f"{many} of the {known} most rated had no update for a year")
    visible = _listed(facts, "apps")[:10]
    single = sum(each.get("languages") == 1 for each in visible)
    if single * 2 >= len(visible) > 0:
        parts.append(f"{single} of the {len(visible)} most visible are in one language only")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _price(apps: Sequence[Mapping[str, Any]]) -> str:
    """What the visible apps cost, and so what to charge."""
    known = [each for each in apps[:10] if each.get("price") is not None]
    paid = [(each["price"], each.get("shown_price")) for each in known if each["price"] > 0]
    visible = f"of the {len(known)} most visible apps"
    if len(paid) >= PRICED_MANY:
        return f"{len(paid)} {visible} cost something, {calm(priced(paid), NAME_MOST)} at the median: charge as much."
    if not known:
        return ""
    free = f"{len(known) - len(paid)} {visible} are free to download"
    selling = [_cheapest(each) for each in apps[:10] if each.get("purchases")]
    if len(selling) < PRICED_MANY:
        sell = {0: "none sells", 1: "only one sells", 2: "only two sell"}[len(selling)]
        return f"{free}, and {sell} in-app purchases: few users pay here."
    usual = calm(priced(selling), NAME_MOST)
    return f"{free}. {len(selling)} sell in-app purchases, the cheapest for {usual} at the median: start at this price."


def _cheapest(app: Mapping[str, Any]) -> tuple[float, str | None]:
    """Its cheapest purchase, also as the store shows it."""
    amounts, shown = app["purchases"], app.get("shown_purchases") or []
    place = amounts.index(min(amounts))
    return amounts[place], shown[place] if place < len(shown) else None


def _parts(facts: Mapping[str, Any]) -> list[Titled]:
    """The four parts of the score, each the higher the better."""
    found = []
    for name, title in PARTS:
        value = facts.get(name)
        if isinstance(value, int | float):
            score = float(100 - value if name == "competitiveness" else value)
            found.append(Titled(title=title, text=number(score), score=round(max(0.0, min(100.0, score)), 1)))
    return found


def _point(fact: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]], links: bool) -> Point:
    apps = [named[row] for row in fact.get("rows", []) if row in named]
    shown = [Named(name=calm(app["name"], NAME_MOST), url=safe_url(app.get("url"), links)) for app in apps]
    return Point(text=calm(fact.get("text") or "", LINE_MOST), apps=shown)


def _rivals(apps: Sequence[Mapping[str, Any]], beaten: Sequence[Mapping[str, Any]], links: bool) -> list[Rival]:
    most = max((app.get("ratings") or 0 for app in apps), default=0)
    why = {each.get("track_id"): _without_stars(calm(each.get("why") or "", LINE_MOST)) for each in beaten}
    return [
        Rival(
            name=calm(app["name"], NAME_MOST),
            ratings=app.get("ratings") or 0,
            stars=None if app.get("stars") is None else round(app["stars"], 1),
            updated_years=None if app.get("idle_days") is None else round(app["idle_days"] / DAYS_A_YEAR, 1),
            share=round((app.get("ratings") or 0) / most, 3) if most else 0.0,
            url=safe_url(app.get("url"), links),
            why=why.get(app.get("track_id")),
        )
        for app in sorted(apps, key=lambda app: -(app.get("ratings") or 0))[:RIVALS]
    ]


def _without_stars(why: str) -> str:
    """Their number stands beside it."""
    return "; ".join("rated low" if part.endswith(" stars") else part for part in why.split("; "))


def _quote(each: Mapping[str, Any]) -> Quote:
    return Quote(
        term=calm(each["term"], NAME_MOST),
        reviews=each["reviews"],
        text=calm(each["quote"], LINE_MOST),
        app=calm(each["app"], NAME_MOST),
        at=calm(each["at"], NAME_MOST),
    )


def _typed(each: Mapping[str, Any]) -> Typed:
    return Typed(keyword=calm(each["keyword"], NAME_MOST), letters=each.get("typed"))


def _listed(facts: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = facts.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

"""The tables of the page: opportunities with their reasons, markets, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock_systems.appstore.reading.facts import Market, Opportunity, Reference, Report, Titled
from penstock_systems.appstore.reading.markup import Markup, apart, joined, tag
from penstock_systems.appstore.reading.plots_map import shade
from penstock_systems.appstore.reading.plots_small import score_line
from penstock_systems.appstore.reading.shown import chart_shown, moment_shown, number, signed

REFERENCES_SHOWN = 3  # beside the reason; the others are in the details


def opportunities(report: Report) -> Markup:
    if not report.opportunities:
        return tag("p", "No market has been evaluated yet.", class_="soft")
    head = _head(("#", "n"), ("market", ""), ("score", "n"), ("why", ""), ("reference apps", ""))
    rows = [row for each in report.opportunities for row in (_opportunity(each), _details(each))]
    return joined(
        tag("p", "The newest evaluation of each market, the best first.", class_="soft"),
        tag("table", head, tag("tbody", *rows), class_="cards"),
    )


def markets(found: Sequence[Market]) -> Markup:
    head = _head(
        ("#", "n"), ("market", ""), ("score", "n"), ("change", "n"), ("", ""), ("demand", "n"), ("rivals", "n"),
        ("spread", "n"), ("apps", "n"), ("keywords", "n"),
    )  # fmt: skip
    return tag("div", tag("table", head, tag("tbody", *map(_market, found))), class_="scroll")


def moved(report: Report) -> Markup | None:
    found = report.trends
    parts = [
        _part("Apps that win ratings", found["rising_apps"], "ratings a day", _rising),
        _part("Apps that climb the charts", found["climbers"], "places", _climber),
        _part("Markets that rise", found["rising_clusters"], "score", _rising_market),
    ]
    if not any(parts):
        return None
    since = tag("p", f"Since {moment_shown(found['since'])} UTC.", class_="soft")
    return joined(since, tag("div", *parts, class_="columns"))


def score(value: float | None) -> Markup:
    return tag("span", number(value, 1), class_=f"score {shade(value)}")


def _head(*titles: tuple[str, str]) -> Markup:
    return tag("thead", tag("tr", *(tag("th", title, class_=class_ or None, scope="col") for title, class_ in titles)))


def _opportunity(each: Opportunity) -> Markup:
    named = joined(apart(each.name), tag("br"), tag("span", apart(each.verdict), class_="verdict"))
    shown = [tag("li", _reference(app)) for app in each.reference_apps[:REFERENCES_SHOWN]]
    return tag(
        "tr",
        tag("td", each.rank, class_="n"),
        tag("td", named, class_="name"),
        tag("td", score(each.score), class_="n"),
        tag("td", apart(each.reason), class_="why"),
        tag("td", tag("ul", *shown) if shown else "-", class_="refs"),
    )


def _details(each: Opportunity) -> Markup:
    parts = joined(
        tag("p", "Evaluated by ", apart(each.made_by), f" on {moment_shown(each.at)} UTC, market {each.market}."),
        _list("Tips", [apart(tip) for tip in each.tips]),
        _list("What could be built", [_titled(concept) for concept in each.concepts]),
        _list("Ways to market it", [_titled(method) for method in each.methods]),
        *(joined(tag("h3", "The debate in short"), tag("p", apart(text))) for text in each.debates),
        _list("The debate", [_titled(message) for message in each.messages]),
        *(joined(tag("h3", "Playbook"), tag("p", text, class_="body", dir="auto")) for text in each.playbooks),
        _list("All reference apps", [_reference(app) for app in each.reference_apps]),
    )
    opened = tag("details", tag("summary", "Tips, debate, methods, playbook"), tag("div", parts))
    return tag("tr", tag("td", opened, colspan=5), class_="more")


def _list(title: str, items: Sequence[Markup]) -> Markup | None:
    return joined(tag("h3", title), tag("ul", *(tag("li", item) for item in items))) if items else None


def _titled(each: Titled) -> Markup:
    figure = None if each.score is None else joined(" ", score(each.score))
    return joined(tag("b", apart(each.title)), figure, " ", apart(each.text))


def _reference(app: Reference) -> Markup:
    named = apart(app.name, 60)
    if app.url is not None:
        named = tag("a", named, href=app.url, rel="noopener noreferrer nofollow")
    figures = [apart(app.role)]
    if app.ratings is not None:
        figures.append(joined(f"{number(app.ratings)} ratings"))
    if app.stars is not None:
        figures.append(joined(f"{number(app.stars, 1)}★"))
    told = joined(*(joined(", " if place else "", figure) for place, figure in enumerate(figures)))
    return joined(named, " ", tag("span", told, class_="soft"))


def _market(each: Market) -> Markup:
    change = None if each.change is None else round(each.change, 1)
    way = None if not change else "up" if change > 0 else "down"
    return tag(
        "tr",
        tag("td", each.number, class_="n"),
        tag("td", apart(each.name), class_="name"),
        tag("td", score(each.score), class_="n"),
        tag("td", tag("span", signed(each.change), class_=way), class_="n"),
        tag("td", score_line(each.history)),
        *(tag("td", number(value, 1), class_="n") for value in (each.demand, each.competitiveness, each.fragmentation)),
        *(tag("td", number(value), class_="n") for value in (each.apps, each.keywords)),
    )


def _part(title: str, rows: Sequence[dict[str, Any]], figure: str, drawn: Any) -> Markup | None:
    if not rows:
        return None
    return tag(
        "div",
        tag("h3", title),
        tag("table", _head(("", ""), (figure, "n")), tag("tbody", *(drawn(row) for row in rows))),
    )


def _rising(row: dict[str, Any]) -> Markup:
    return _moved(row["track_name"], row["primary_genre"], number(row["rating_velocity_7d"], 1))


def _climber(row: dict[str, Any]) -> Markup:
    chart = f"{chart_shown(row['collection'])}, {row['category_name'] or row['category']}"
    return _moved(row["track_name"], chart, f"{row['was']} → {row['rank']}")


def _rising_market(row: dict[str, Any]) -> Markup:
    return _moved(row["name"], None, f"{number(row['was'], 1)} → {number(row['opportunity_score'], 1)}")


def _moved(name: str, what: str | None, figure: str) -> Markup:
    told = joined(apart(name, 60), None if not what else joined(tag("br"), tag("span", apart(what), class_="soft")))
    return tag("tr", tag("td", told), tag("td", figure, class_="n"))

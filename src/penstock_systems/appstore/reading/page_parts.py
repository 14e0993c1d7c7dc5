"""The other parts of the page: key figures, the plots with their words, the cost, and how to read it all."""

from __future__ import annotations

from penstock_systems.appstore.reading import plots_map, plots_pace, plots_small
from penstock_systems.appstore.reading.facts import Report
from penstock_systems.appstore.reading.markup import Markup, apart, joined, tag
from penstock_systems.appstore.reading.page_tables import markets
from penstock_systems.appstore.reading.shown import number

FIGURES = (
    ("apps", "apps"),
    ("enriched", "enriched"),
    ("developers", "developers"),
    ("keywords", "keywords"),
    ("rankings", "rankings"),
    ("reviews", "reviews"),
    ("markets", "markets"),
    ("opportunities", "opportunities"),
)
USED = {
    "requests": "requests served",
    "rows_read": "rows read (estimated, never too low)",
    "rows_written": "rows written",
    "queue_operations": "queue operations",
    "blob_reads": "pages read from the cache",
    "blob_bytes": "bytes stored as files",
    "object_requests": "calls of objects",
    "object_seconds": "execution seconds of objects",
    "metric_writes": "data points",
}
HOW = (
    ("score", "0.4 of the demand, 0.35 of what its apps lack in strength, 0.25 of how evenly they share the ratings. Above "
     "70 a market is evaluated."),
    ("demand", "0 to 100: how well known the apps are that rank for the market's keywords."),
    ("rivals", "0 to 100: how strong its apps are on average, by ratings, stars and ratings won a day."),
    ("spread", "0 to 100: 0 where one app has all ratings, 90 where ten share them evenly."),
    ("map", "A bubble is a market. Its size is the demand, its number the rank by score. Lines join markets that have "
     "apps or keywords in common. Names that do not fit are in the table."),
)  # fmt: skip


def figures(report: Report) -> Markup:
    told = [(title, number(getattr(report.figures, name))) for name, title in FIGURES]
    return tag("dl", *(tag("div", tag("dt", title), tag("dd", figure)) for title, figure in told), class_="figures")


def market_map(report: Report) -> Markup:
    if not report.markets:
        return tag("p", "No market is known yet.", class_="soft")
    shown, known = len(report.markets), report.figures.markets
    told = f"The {shown} best of {known} markets." if shown < known else f"All {known} markets."
    return joined(
        tag(
            "p",
            told,
            " A larger bubble has more demand; a stronger colour is a better score.",
            class_="soft",
        ),
        plots_map.market_map(report.markets, report.relations),
        plots_map.legend(),
        markets(report.markets),
    )


def pace(report: Report) -> Markup | None:
    """Only where somebody has told it: a database does not know what a store would have borne."""
    if not report.pace:
        return None
    keys = [
        tag("span", tag("i", class_="dash pace"), "pages answered a minute", class_="key"),
        tag("span", tag("i", class_="dash limit"), "the hidden limit of the store", class_="key"),
        tag("span", tag("i", class_="dot"), "the store refused", class_="key"),
    ]
    return joined(
        tag("p", plots_pace.in_words(report.pace), class_="soft"),
        plots_pace.pace_plot(report.pace),
        tag("p", *keys, class_="legend"),
    )


def funnel(report: Report) -> Markup:
    told = [tag("li", tag("b", stage.name), f": {stage.meaning}") for stage in report.funnel]
    return joined(plots_small.funnel(report.funnel), tag("ul", *told, class_="soft"))


def cost(report: Report) -> Markup:
    found = report.cost
    head = tag(
        "thead", tag("tr", tag("th", f"used in {found.month}"), tag("th", class_="n"), tag("th", "price", class_="n"))
    )
    lines = [
        tag(
            "tr",
            tag("td", USED.get(line.name, line.name.replace("_", " "))),
            tag("td", number(line.used), class_="n"),
            tag("td", _money(line.usd), class_="n"),
        )
        for line in found.lines
    ]
    calls = sum(each.calls for each in found.paid)
    paid = [
        tag(
            "tr",
            tag("td", "paid calls: ", apart(each.provider), " ", apart(each.operation)),
            tag("td", number(each.calls), class_="n"),
            tag("td", _money(each.usd), class_="n"),
        )
        for each in found.paid
    ] or [tag("tr", tag("td", "paid calls"), tag("td", "0", class_="n"), tag("td", _money(0.0), class_="n"))]
    told = (
        f"{_money(found.usd)} at a cloud platform's prices, which was not charged here, and "
        f"{_money(found.paid_usd)} for {number(calls)} paid call{'' if calls == 1 else 's'}."
    )
    return joined(
        tag("p", told, class_="soft"),
        tag("div", tag("table", head, tag("tbody", *lines, *paid)), class_="scroll"),
    )


def how_to_read(report: Report) -> Markup:
    terms = [tag("li", tag("b", term), f": {meaning}") for term, meaning in HOW]
    notes = [tag("li", apart(note)) for note in report.notes]
    return joined(tag("ul", *terms), tag("h3", "Notes"), tag("ul", *notes))


def _money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else f"${usd:.4f}"

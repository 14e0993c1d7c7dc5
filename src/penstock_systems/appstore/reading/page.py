"""The report as one HTML file: no script, no request to anywhere, readable on a phone, in the dark and on paper."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from penstock_systems.appstore.opportunity.case import BUILD_SCORE, TYPED_EARLY, WATCH_SCORE
from penstock_systems.appstore.reading import plots
from penstock_systems.appstore.reading.facts import Report
from penstock_systems.appstore.reading.shown import calm, chart_shown, harmless, moment_shown, number, signed

STYLE = (files(__package__) / "page.css").read_text("utf-8")
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
# Nothing may be loaded and nothing may run; only this very style may be applied.
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
SHADES = ((4, "80 and more"), (3, "70 to 80"), (2, "55 to 70"), (1, "40 to 55"), (0, "below 40"))
FIGURES = ("apps", "enriched", "developers", "keywords", "rankings", "reviews", "markets", "opportunities")
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
Row = dict[str, Any]


def html(report: Report) -> str:
    """The whole page."""
    moved = list(_moved(report))
    pace = plots.pace_figures(report.pace)
    sections = [("opportunities", "Opportunities"), ("markets", "Demand against ease")]
    sections += [("pace", "Pace")] if pace else []
    sections += [("moved", "What changed")] if moved else []
    page: str = _TEMPLATE.render(
        report=report,
        style=Markup(STYLE),
        policy=POLICY,
        sections=[*sections, ("data", "What this rests on")],
        planes=plots.plane(
            report.markets, report.franchises, {each.market: each.rank for each in report.opportunities}
        ),
        shades=SHADES,
        pace=pace,
        pace_plots=plots.pace_plots(report.pace) if pace else [],
        pace_words=plots.in_words(report.pace),
        moved=moved,
        since=max(report.trends["since"] or "", report.begins or "") or None,
        figures=[(name, getattr(report.figures, name)) for name in FIGURES],
        calls=sum(each.calls for each in report.cost.paid),
    )
    return page


def _headline(report: Report) -> str:
    figures = report.figures
    good = sum(each.verdict == "build" for each in report.opportunities)
    told = f"{number(figures.apps)} apps, {number(figures.keywords)} keywords and {number(figures.markets)} markets"
    if not report.opportunities:
        return f"{told}. No market has been evaluated yet."
    return f"{told}. Of the {number(len(report.opportunities))} best, {number(good)} are worth building for."


def _list_note(report: Report) -> str:
    """Which they are: those from 70 up, or where fewer than ten are, the best ten."""
    good = sum(each.score >= BUILD_SCORE for each in report.opportunities)
    if good >= len(report.opportunities):
        return f"The {good} best markets, each with a score of {BUILD_SCORE:.0f} or more."
    return f"The best markets that were evaluated; {good} of them score {BUILD_SCORE:.0f} or more."


def _verdict_note() -> str:
    """What the words on the cards mean."""
    return (
        f"“build” stands for a score of {BUILD_SCORE:.0f} or more, “watch” for {WATCH_SCORE:.0f} or more, and “avoid” for "
        "less, or for a market that one fact rules out."
    )


def _market_note(report: Report) -> str:
    shown, known = len(report.markets) + len(report.franchises), report.figures.markets
    return f"The {shown} best of {known} markets." if shown < known else f"All {known} markets."


def _moved(report: Report) -> Iterator[tuple[str, str, list[Row]]]:
    found = report.trends
    shown = [(each, number(each["was"], 0), number(each["opportunity_score"], 0)) for each in found["rising_clusters"]]
    if told := [(each, f"{was} → {score}") for each, was, score in shown if was != score]:
        yield (
            "Markets that rise",
            "score",
            [{"name": row["name"], "what": None, "figure": shown} for row, shown in told],
        )
    if rows := found["rising_apps"]:
        yield (
            "Apps that gain ratings",
            "ratings a day",
            [
                {
                    "name": row["track_name"],
                    "what": row["primary_genre"],
                    "figure": number(row["rating_velocity_7d"], 1),
                }
                for row in rows
            ],
        )
    if rows := found["climbers"]:
        yield "Apps that climb the charts", "places", [_climber(row) for row in rows]


def _climber(row: Row) -> Row:
    chart = f"{chart_shown(row['collection'])}, {row['category_name'] or row['category']}"
    return {"name": row["track_name"], "what": chart, "figure": f"{row['was']} → {row['rank']}"}


def _money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else f"${usd:.4f}"


def _way(change: float | None) -> str:
    rounded = 0.0 if change is None else round(change, 1)
    return "up" if rounded > 0 else "down" if rounded < 0 else ""


def _verdict_class(verdict: str) -> str:
    return verdict if verdict in ("build", "watch", "avoid") else "other"


def _finalized(value: object) -> object:
    """No control character of a stranger comes through, wherever it stands."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else harmless(value)


_ENVIRONMENT = Environment(
    autoescape=True, undefined=StrictUndefined, finalize=_finalized, trim_blocks=True, lstrip_blocks=True,
    loader=FunctionLoader(lambda name: (files(__package__) / name).read_text("utf-8")),
)  # fmt: skip
_ENVIRONMENT.filters |= {
    "calm": calm,
    "number": number,
    "signed": signed,
    "moment": moment_shown,
    "shade": plots.shade,
    "score_line": plots.score_line,
    "money": _money,
    "way": _way,
    "headline": _headline,
    "list_note": _list_note,
    "market_note": _market_note,
    "verdict_class": _verdict_class,
    "used": lambda name: USED.get(name, name.replace("_", " ")),
}
_ENVIRONMENT.globals |= {"verdict_note": _verdict_note(), "typed_early": TYPED_EARLY}
_TEMPLATE = _ENVIRONMENT.get_template("page.html.j2")

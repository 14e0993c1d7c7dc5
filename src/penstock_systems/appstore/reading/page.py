"""The report as one HTML file: no script, no request to anywhere, readable on a phone, in the dark and on paper."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from penstock_systems.appstore.reading import page_parts, page_tables
from penstock_systems.appstore.reading.facts import Report
from penstock_systems.appstore.reading.markup import Markup, apart, joined, tag
from penstock_systems.appstore.reading.shown import moment_shown

STYLE = (files(__package__) / "page.css").read_text("utf-8")
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
# Nothing may be loaded and nothing may run; only this very style may be applied.
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


def html(report: Report) -> str:
    """The whole page."""
    sections = [
        ("opportunities", "Opportunities", page_tables.opportunities(report)),
        ("map", "Market map", page_parts.market_map(report)),
        ("moved", "What moved", page_tables.moved(report)),
        ("pace", "Pace", page_parts.pace(report)),
        ("funnel", "Apps by stage reached", page_parts.funnel(report)),
        ("cost", "Resources used", page_parts.cost(report)),
        ("reading", "How to read this", page_parts.how_to_read(report)),
    ]
    shown = [(id, title, inside) for id, title, inside in sections if inside is not None]
    page = tag(
        "html",
        _head(report),
        tag(
            "body",
            tag(
                "header",
                tag("h1", apart(report.title)),
                _when(report),
                tag("nav", *(tag("a", title, href=f"#{id}") for id, title, _ in shown), aria_label="Sections"),
                page_parts.figures(report),
            ),
            tag("main", *(tag("section", tag("h2", title), inside, id=id) for id, title, inside in shown)),
        ),
        lang="en",
        dir="ltr",
    )
    return f"<!doctype html>\n{page}\n"


def _head(report: Report) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", report.title),
        Markup(f"<style>{STYLE}</style>"),
    )


def _when(report: Report) -> Markup:
    if report.ends is None:
        return tag("p", "The pipeline has no data yet.", class_="when")
    told = joined("Data from ", moment_shown(report.begins), " to ", moment_shown(report.ends), " UTC.")
    return tag("p", told, class_="when")

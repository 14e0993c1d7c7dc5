"""Answers to whoever looks at one app: its page, its histogram, its reviews."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import RedirectResponse, Response

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.feeds import atom, chart_entry, feed_of, review_entry
from penstock_systems.standins.appstore.former import old_data, old_page
from penstock_systems.standins.appstore.page import NOT_FOUND, product_page
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.reviews import most_helpful, newest
from penstock_systems.standins.appstore.visit import Visit, html, number, options, script

REVIEWS_A_PAGE, REVIEW_PAGES = 50, 10
BROWSERS = ("mozilla", "chrome", "safari", "webkit")
_ID = re.compile(r"id(\d{1,18})")


# -- pages ----------------------------------------------------------------------------------------------------------------


def unslugged(visit: Visit) -> Response:
    """Sends on to the address with the app's name in it."""
    app = _named(visit)
    if app is None:
        return html(NOT_FOUND, 404)
    query = f"?{visit.request.url.query}" if visit.request.url.query else ""
    return RedirectResponse(f"/{visit.country}/app/{app.slug}/id{app.track_id}{query}", status_code=301)


def page(visit: Visit) -> Response:
    app = _named(visit)
    if app is None:
        return html(NOT_FOUND, 404)
    if visit.client.startswith("32"):
        return script(old_data(visit.sight(app))) if visit["dataOnly"] else html(old_page(visit.sight(app)))
    if visit.fault == "empty":
        return html("")
    return html(product_page(visit.sight(app), whole=visit.stock.manners.whole_pages, fault=visit.fault))


def ratings(visit: Visit) -> Response:
    """The small page with the histogram. Whoever does not say which store is meant sees nothing."""
    app = _named(visit)
    if app is None or not visit.front or visit.fault == "empty":
        return html("")
    text = ratings_html(app.histogram(visit.day, visit.country))
    return html(text[: len(text) // 2] if visit.fault == "truncated" else text)


def ratings_html(histogram: Sequence[int]) -> str:
    """The histogram, five stars first; an app without ratings shows no bars."""
    bars = "".join(f'<div class="vote"><span class="total">{count:,}</span></div>' for count in histogram)
    return (
        f'<html><body><div class="rating-count">{sum(histogram):,} Ratings</div>{bars * any(histogram)}</body></html>'
    )


def amp(visit: Visit) -> Response:
    """The interface of Apple's own pages takes nobody without their token."""
    return Response(status_code=401)


def _named(visit: Visit) -> App | None:
    named = _ID.fullmatch(visit.request.path_params["id"])
    return visit.sold(int(named[1])) if named else None


# -- reviews --------------------------------------------------------------------------------------------------------------


def reviews(visit: Visit) -> Response:
    """The newest reviews, or a feed without any for whoever it does not like."""
    _, chosen, form = options(f"customerreviews/{visit.request.path_params['rest']}")
    asked, track_id = number(chosen.get("page"), 1), number(chosen.get("id"), 0)
    if form not in ("json", "xml") or not visit.known_country:
        return Response(status_code=404)
    if asked == 0:
        return html("<html><body>Internal Server Error</body></html>", 500)
    if asked > REVIEW_PAGES:
        text = f"CustomerReviews RSS page depth is limited to {REVIEW_PAGES}"
        return Response(text, status_code=400, media_type="text/plain")
    app = visit.sold(track_id)
    entries = _entries(visit, app, asked, chosen.get("sortby", "mostRecent")) if app and _liked(visit, form) else []
    feed = feed_of(entries, title="Customer Reviews", url=str(visit.request.url), now=visit.now)
    if form == "xml":
        body = atom(feed)
        return Response(body[: len(body) // 2] if visit.fault == "truncated" else body, media_type="text/xml")
    return script(feed, visit.fault)


def _entries(visit: Visit, app: App, asked: int, order: str) -> list[Json]:
    catalogue, start = visit.stock.catalogue, (asked - 1) * REVIEWS_A_PAGE
    chosen = most_helpful if order.casefold() == "mosthelpful" else newest
    found = chosen(catalogue, app, visit.now, visit.country, start, REVIEWS_A_PAGE)
    entries = [review_entry(app, review, visit.country) for review in found]
    # A former habit that some feeds have kept: the app itself comes first.
    first = entries and asked == 1 and app.index % 2 == 0
    return [chart_entry(catalogue, app, visit.country), *entries] if first else entries


def _liked(visit: Visit, form: str) -> bool:
    """Whether this client gets to see reviews at all. Nobody says no: the feed is just empty."""
    agent = visit.request.headers.get("user-agent", "").casefold()
    browser = any(name in agent for name in BROWSERS) and "compatible" not in agent
    match visit.stock.manners.review_feed:
        case "open":
            return visit.fault != "empty"
        case "plain":
            return not browser and visit.fault != "empty"
        case "itunes":
            return form == "xml" and "itunes" in agent and visit.fault != "empty"
    return False

"""One app's rows, written together: all that was learnt about it is saved at once, or nothing is."""

from __future__ import annotations

from penstock_systems.appstore.app import PortfolioWanted, db, settings, wishes
from penstock_systems.appstore.enrich import rows
from penstock_systems.appstore.enrich.mentions import mentions
from penstock_systems.appstore.enrich.parts import Known, Parts
from penstock_systems.appstore.enrich.verdict import WISHED, Verdict

# What was not said replaces nothing. Purchases are the exception: a page that was read and has none says so.
ENRICHED = """
insert into app_registry (
  track_id, bundle_id, track_name, seller_name, average_rating, rating_count, primary_genre, price, formatted_price,
  artwork_url, track_view_url, description, release_date, version, version_released_at, reviews_read, reviews_unhappy,
  content_rating, languages, developer_id,
  developer_website, subtitle, screenshots, rating_histogram, similar_apps, in_app_purchases, iap_scraped_at,
  iap_scrape_status, data_source, first_seen_at, last_seen_at, enriched_at, enrichment_source, enrich_attempts,
  next_enrich_at, enrich_error
)
values (
  :track_id, :bundle_id, coalesce(:track_name, 'Unknown'), coalesce(:seller_name, 'Unknown'), :average_rating,
  coalesce(:rating_count, 0), coalesce(:primary_genre, :page_genre), :price, :formatted_price, :artwork_url, :track_view_url,
  :description, :release_date, :version, :version_released_at, :reviews_read,
  :reviews_unhappy, :content_rating, :languages, :developer_id, :developer_website, :subtitle,
  :screenshots, :rating_histogram, :similar_apps, :in_app_purchases, :iap_scraped_at, :iap_scrape_status, 'enrichment',
  :now, :now, :now, :source, :attempts, :next_enrich_at, :error
)
on conflict (track_id) do update set
  bundle_id = coalesce(excluded.bundle_id, app_registry.bundle_id),
  track_name = coalesce(:track_name, app_registry.track_name),
  seller_name = coalesce(:seller_name, app_registry.seller_name),
  average_rating = coalesce(excluded.average_rating, app_registry.average_rating),
  rating_count = coalesce(:rating_count, app_registry.rating_count),
  primary_genre = coalesce(:primary_genre, app_registry.primary_genre, :page_genre),
  price = coalesce(excluded.price, app_registry.price),
  formatted_price = coalesce(excluded.formatted_price, app_registry.formatted_price),
  artwork_url = coalesce(excluded.artwork_url, app_registry.artwork_url),
  track_view_url = coalesce(excluded.track_view_url, app_registry.track_view_url),
  description = coalesce(excluded.description, app_registry.description),
  release_date = coalesce(excluded.release_date, app_registry.release_date),
  version = coalesce(excluded.version, app_registry.version),
  version_released_at = coalesce(excluded.version_released_at, app_registry.version_released_at),
  reviews_read = coalesce(excluded.reviews_read, app_registry.reviews_read),
  reviews_unhappy = coalesce(excluded.reviews_unhappy, app_registry.reviews_unhappy),
  content_rating = coalesce(excluded.content_rating, app_registry.content_rating),
  languages = coalesce(excluded.languages, app_registry.languages),
  developer_id = coalesce(excluded.developer_id, app_registry.developer_id),
  developer_website = coalesce(excluded.developer_website, app_registry.developer_website),
  subtitle = coalesce(excluded.subtitle, app_registry.subtitle),
  screenshots = coalesce(excluded.screenshots, app_registry.screenshots),
  rating_histogram = coalesce(excluded.rating_histogram, app_registry.rating_histogram),
  similar_apps = coalesce(excluded.similar_apps, app_registry.similar_apps),
  in_app_purchases = case
    when excluded.iap_scraped_at is null then app_registry.in_app_purchases
    else excluded.in_app_purchases
  end,
  iap_scraped_at = coalesce(excluded.iap_scraped_at, app_registry.iap_scraped_at),
  iap_scrape_status = coalesce(excluded.iap_scrape_status, app_registry.iap_scrape_status),
  last_seen_at = excluded.last_seen_at,
  enriched_at = excluded.enriched_at,
  enrichment_source = excluded.enrichment_source,
  enrich_attempts = excluded.enrich_attempts,
  next_enrich_at = excluded.next_enrich_at,
  enrich_error = excluded.enrich_error,
  enrich_priority = app_registry.enrich_priority
    - case when app_registry.enrich_priority >= :wished then :wished else 0 end
"""
FAILED = """
update app_registry
set enriched_at = :now, enrichment_source = 'failed', enrich_attempts = :attempts, next_enrich_at = :next_enrich_at,
  enrich_error = :error, enrich_priority = enrich_priority - case when enrich_priority >= :wished then :wished else 0 end
where track_id = :track_id
"""
WAITS = """
update app_registry
set enrich_attempts = :attempts, next_enrich_at = :next_enrich_at, enrich_error = :error
where track_id = :track_id
"""
DEVELOPER = """
insert into developers (developer_id, name, website, first_seen_at)
values (:developer_id, coalesce(:name, 'Unknown'), :website, :first_seen_at)
on conflict (developer_id) do update set
  name = coalesce(:name, developers.name),
  website = coalesce(excluded.website, developers.website)
"""
# A review that came back with a later time was edited.
REVIEW = """
insert into app_reviews (review_id, track_id, rating, title, body, sentiment, version, edited, reviewed_at, seen_at)
values (:review_id, :track_id, :rating, :title, :body, :sentiment, :version, 0, :reviewed_at, :now)
on conflict (review_id) do update set
  rating = excluded.rating,
  title = excluded.title,
  body = excluded.body,
  sentiment = excluded.sentiment,
  version = coalesce(excluded.version, app_reviews.version),
  edited = 1,
  reviewed_at = excluded.reviewed_at,
  seen_at = excluded.seen_at
where excluded.reviewed_at > app_reviews.reviewed_at
"""
# One statement each, however many rows there are: what is prepared once is cheaper than one text for many rows.
VERSION = """
insert into app_version_history (track_id, version, released_at, notes)
values (:track_id, :version, :released_at, :notes)
on conflict (track_id, version) do update set released_at = excluded.released_at
where app_version_history.released_at is null
and excluded.released_at is not null
"""
MENTION = """
insert into app_keyword_mentions (track_id, keyword, field, count)
values (:track_id, :keyword, :field, :count)
on conflict (track_id, keyword) do update set field = excluded.field, count = excluded.count
"""
DISCOVERED = """
insert into app_registry (
  track_id, bundle_id, track_name, seller_name, average_rating, rating_count, primary_genre, price, formatted_price,
  artwork_url, track_view_url, description, subtitle, developer_id, data_source, first_seen_at, last_seen_at
)
values (
  :track_id, :bundle_id, :track_name, :seller_name, :average_rating, :rating_count, :primary_genre, :price,
  :formatted_price, :artwork_url, :track_view_url, :description, :subtitle, :developer_id, :data_source, :now, :now
)
on conflict do nothing
"""
FORGET_MENTION = "delete from app_keyword_mentions where track_id = :track_id and keyword = :keyword"


def save(track_id: int, parts: Parts, known: Known, verdict: Verdict, now: str) -> None:
    """Joins the unit."""
    fate = {"track_id": track_id, "attempts": verdict.attempts, "error": verdict.error}
    fate["next_enrich_at"] = verdict.next_enrich_at
    if verdict.source is None:
        db.write(WAITS, fate)
        return
    if verdict.source == "failed":
        db.write(FAILED, fate, now=now, wished=WISHED)
        return
    row = rows.registry_row(parts, now)
    reviews = rows.review_rows(track_id, parts, now)
    db.write(
        ENRICHED, {**row, **rows.tone_row(reviews), **fate, "source": verdict.source, "now": now, "wished": WISHED}
    )
    _save_developer(parts, known, now)
    write_rows(REVIEW, reviews)
    write_rows(VERSION, rows.version_rows(track_id, parts))
    _save_mentions(track_id, row, known)
    write_rows(DISCOVERED, rows.discovered_rows(track_id, parts, now))


def write_rows(statement: str, made: list[rows.Row]) -> None:
    """Joins the unit."""
    if made:
        db.write_many(statement, made)


def _save_developer(parts: Parts, known: Known, now: str) -> None:
    """A developer's other apps are asked for once, by a message: a look-up more must hold up no app."""
    developer = rows.developer_row(parts, now)
    if developer is None:
        return
    db.write(DEVELOPER, developer)
    if known.portfolio_at is None:
        wanted = PortfolioWanted(developer_id=int(str(developer["developer_id"])))
        wishes.send(wanted, unique=f"portfolio {wanted.developer_id}", priority=2)


def _save_mentions(track_id: int, row: rows.Row, known: Known) -> None:
    """Only what has changed: of most apps nothing has, and a row that is written costs ten times one that is read."""
    said = (row["track_name"], row["subtitle"], row["description"])
    title, subtitle, description = (text if isinstance(text, str) else None for text in said)
    found = mentions(title, subtitle, description, settings.alphabet)
    gone = {each.keyword for each in known.mentions} - {each.keyword for each in found}
    write_rows(FORGET_MENTION, [{"track_id": track_id, "keyword": keyword} for keyword in sorted(gone)])
    new = [each for each in found if each not in known.mentions]
    write_rows(
        MENTION,
        [{"track_id": track_id, "keyword": each.keyword, "field": each.field, "count": each.count} for each in new],
    )

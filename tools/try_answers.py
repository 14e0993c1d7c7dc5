"""Parse every recorded answer of a store in a folder and print what each holds: `python -m tools.try_answers FOLDER`.

Which endpoint an answer is from is told from its content. The exit code is 1 if an answer cannot be read, 2 if there is none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import penstock as ps
from penstock_systems.appstore.store.charts import parse_chart
from penstock_systems.appstore.store.decoding import Read, decoded
from penstock_systems.appstore.store.genres import parse_genres
from penstock_systems.appstore.store.hints import parse_hints
from penstock_systems.appstore.store.lookup import parse_lookup
from penstock_systems.appstore.store.page import parse_page
from penstock_systems.appstore.store.ratings import parse_ratings
from penstock_systems.appstore.store.reviews import parse_reviews

SUFFIXES = (".json", ".xml", ".plist", ".html", ".txt")
_PAGE_ID = re.compile(rb'"ProductPageIntent".{0,300}?"id"\s*:\s*"(\d+)"|/id(\d{5,})', re.DOTALL)


class Tried(NamedTuple):
    """One answer: the endpoint it is from, how many things it held, how many were skipped, and what is known of them."""

    endpoint: str
    things: int
    skipped: int
    known: str


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if len(arguments) == 1 else None
    if folder is None or not folder.is_dir():
        print(__doc__)
        return 2
    files = sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES)
    failed = 0
    for file in files:
        try:
            tried = try_answer(file.read_bytes())
        except ps.PenstockError as error:
            failed += 1
            print(f"{file.name}: {error}")
            continue
        print(f"{file.name}: {tried.endpoint}, {tried.things} read, {tried.skipped} skipped. {tried.known}")
    print(f"{len(files)} answers, {failed} that cannot be read.")
    return 2 if not files else 1 if failed else 0


def try_answer(body: bytes) -> Tried:
    """Read an answer of any endpoint; raises `ps.Unparsable` for one that is of none, or is broken."""
    start = body.lstrip()[:400]
    if b"<plist" in start:
        terms = parse_hints(body)
        return Tried("hints", len(terms.facts), terms.skipped, ", ".join(terms.facts[:3]))
    if b"http://www.w3.org/2005/Atom" in start:
        return _listed("reviews as XML", parse_reviews(body, "xml"))
    if start.startswith(b"{"):
        return _from_json(body)
    if b"rating-count" in body and b"serialized-server-data" not in body:
        ratings = parse_ratings(body)
        return Tried("ratings", int(ratings is not None), 0, str(ratings))
    return _page(body)


def _from_json(body: bytes) -> Tried:
    names = decoded(body, dict[str, msgspec.Raw], "This")
    if "results" in names:
        found = parse_lookup(body)
        return _listed("search or look-up", Read(list(found.facts.values()), found.skipped))
    if "36" in names:
        genres = parse_genres(body)
        return Tried("genres", len(genres.facts), genres.skipped, "")
    if b'"im:rating"' in body:
        return _listed("reviews as JSON", parse_reviews(body, "json"))
    return _listed("chart", parse_chart(body))


def _page(body: bytes) -> Tried:
    named = _PAGE_ID.search(body)
    if named is None:
        raise ps.Unparsable("This is the answer of no endpoint that is known here.", reason="unknown")
    page, skipped = parse_page(body, int(named[1] or named[2]))
    dated = sum(version.released is not None for version in page.versions)
    known = f"{page.form}: {page.ratings or 'no histogram'}; {dated} of {len(page.versions)} versions have a date"
    return Tried("page", 1, skipped, known)


def _listed(endpoint: str, read: Read[Any]) -> Tried:
    """With the share of the entries that have each field."""
    entries: Iterable[Any] = read.facts
    rows = [msgspec.structs.asdict(each) for each in entries]
    lacking = [name for name in (rows[0] if rows else {}) if all(row[name] in (None, "") for row in rows)]
    return Tried(endpoint, len(rows), read.skipped, f"Not said: {', '.join(lacking)}." if lacking else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The messages that every side of a benchmark handles: payloads for the engine, the bodies it makes of them for others."""

from __future__ import annotations

import penstock as ps
from penstock.model.envelope import encode

QUEUE, SENT_TO = "listings", "scored"
CREATE_RESULTS = """create table results (
  number integer not null,
  title text not null,
  score real not null
);
"""
WRITE = "insert into results (number, title, score) values (:number, :title, :score)"


class Listing(ps.Event, type="listing.found"):
    number: int
    url: str
    title: str


class Scored(ps.Event, type="listing.scored"):
    number: int
    url: str
    score: float


class Load:
    """So many messages of about 90 bytes, and what a handler writes and sends for each of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.listings = [listing(number) for number in range(count)]
        self.scored = [Scored(number=each.number, url=each.url, score=0.5) for each in self.listings]
        self.bodies = [encode(each) for each in self.listings]
        self.bodies_sent = [encode(each) for each in self.scored]
        self.results = [{"number": each.number, "title": each.title, "score": 0.5} for each in self.listings]


def listing(number: int) -> Listing:
    return Listing(number=number, url=f"https://shop.example/flats/{number:08}", title="Two rooms, quiet, no lift")

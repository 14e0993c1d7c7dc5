"""Genres and storefronts: Apple's own numbers, and how much of the store each holds."""

from __future__ import annotations

from dataclasses import dataclass

APP_STORE = 36
GAMES = 6014

# id: (name, per cent of the store). Stickers and the retired Catalogs hold nothing: their charts are empty.
GENRES: dict[int, tuple[str, float]] = {
    6000: ("Business", 10.0),
    6001: ("Weather", 0.3),
    6002: ("Utilities", 9.0),
    6003: ("Travel", 3.0),
    6004: ("Sports", 2.5),
    6005: ("Social Networking", 2.5),
    6006: ("Reference", 1.0),
    6007: ("Productivity", 5.0),
    6008: ("Photo & Video", 2.0),
    6009: ("News", 1.5),
    6010: ("Navigation", 1.0),
    6011: ("Music", 2.0),
    6012: ("Lifestyle", 8.0),
    6013: ("Health & Fitness", 5.0),
    GAMES: ("Games", 18.0),
    6015: ("Finance", 4.0),
    6016: ("Entertainment", 4.0),
    6017: ("Education", 10.0),
    6018: ("Book", 1.5),
    6020: ("Medical", 1.5),
    6021: ("Magazines & Newspapers", 0.3),
    6022: ("Catalogs", 0.0),
    6023: ("Food & Drink", 6.0),
    6024: ("Shopping", 5.0),
    6025: ("Stickers", 0.0),
    6026: ("Developer Tools", 0.4),
    6027: ("Graphics & Design", 0.7),
}

_GAMES = (
    "7001 Action,7002 Adventure,7003 Casual,7004 Board,7005 Card,7006 Casino,7007 Dice,7008 Educational,7009 Family,"
    "7011 Music,7012 Puzzle,7013 Racing,7014 Role Playing,7015 Simulation,7016 Sports,7017 Strategy,7018 Trivia,7019 Word"
)
GAME_GENRES: dict[int, str] = {int(line[:4]): line[5:] for line in _GAMES.split(",")}


def genre_name(genre: int) -> str:
    return GAME_GENRES[genre] if genre in GAME_GENRES else GENRES[genre][0]


def primary(genre: int) -> int:
    """A game's primary genre is Games; the kind of game comes second."""
    return GAMES if genre in GAME_GENRES else genre


@dataclass(frozen=True, slots=True)
class Storefront:
    id: int
    currency: str
    sign: str
    language: str
    share: float  # of the ratings in the largest store


STOREFRONTS: dict[str, Storefront] = {
    "us": Storefront(143441, "USD", "$", "en-US", 1.0),
    "gb": Storefront(143444, "GBP", "£", "en-GB", 0.2),
    "ca": Storefront(143455, "CAD", "$", "en-CA", 0.12),
    "au": Storefront(143460, "AUD", "$", "en-AU", 0.08),
    "de": Storefront(143443, "EUR", "€", "de-DE", 0.12),
    "fr": Storefront(143442, "EUR", "€", "fr-FR", 0.1),
    "jp": Storefront(143462, "JPY", "¥", "ja-JP", 0.25),
    "il": Storefront(143491, "ILS", "₪", "he-IL", 0.02),
}

COUNTRIES = {str(store.id): country for country, store in STOREFRONTS.items()}


def country_of(store_front: str) -> str | None:
    """The country that a store-front header names: `143441-1,29` is the United States."""
    return COUNTRIES.get(store_front.split(",")[0].split("-")[0].strip())


def price_text(price: float, country: str, free: str) -> str:
    """As a person reads it, with thousands set apart; a price of nothing is called `free`."""
    return f"{STOREFRONTS[country].sign}{price:,.2f}" if price else free

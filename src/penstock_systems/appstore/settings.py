"""What a deployment decides about the pipeline: `[systems.appstore]` in penstock.toml. All of it has defaults."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

import penstock as ps
from penstock_systems.appstore.keywords import Letters

TIER_WEIGHTS = {"high": 90, "medium": 7, "low": 3}  # of a hundred rolls; 'active' counts as high
ENGLISH = frozenset({"us", "gb", "au", "ie", "nz"})  # storefronts whose users type a to z
STALE_DAYS = {"high": 7, "active": 7, "medium": 14, "low": 30}


class Bases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the store's hosts are. They are public: `penstock run appstore --standins` puts a fake store in their place."""

    itunes: str = "https://itunes.apple.com"
    search: str = "https://search.itunes.apple.com"
    apps: str = "https://apps.apple.com"


class Refresh(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """After how many days an app is enriched again, by what it was enriched from."""

    itunes: int = 14
    scraper: int = 30
    failed: int = 90


class ReviewFeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form in which reviews are asked for, and as whom: some are answered with nothing."""

    form: Literal["json", "xml"] = "xml"
    user_agent: str = ""  # that of pages where it is empty


class Volumes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """DataForSEO, which knows how often people search for a keyword. The environment holds its login and password; without
    them nobody is asked."""

    base: str = "https://api.dataforseo.com"
    login_env: str = "DATAFORSEO_LOGIN"
    password_env: str = "DATAFORSEO_PASSWORD"
    location_code: int = 2840  # the United States
    language_code: str = "en"
    usd_a_call: float = 0.1  # at most: one call takes a thousand keywords
    usd_a_month: float = 3.0


class ResearchBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars that a model may cost when markets are looked into: for one market, in a day, in a month."""

    run: float = 0.50
    day: float = 2.0
    month: float = 20.0


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    country: str = "us"
    language: str = "en-US"
    letters: Literal["latin", "any"] | None = None  # of keywords, latin: a to z only; without it as the country writes
    bases: Bases = Bases()
    page_user_agent: str = "Penstock"
    robots: bool = True  # pages are read as far as the robots.txt of their host allows
    blobs: str = "."  # the folder that holds the page cache and the archive
    refresh: Refresh = Refresh()
    # While some apps were never enriched, one place in so many goes to an app that is due again; with 0 none does.
    due_every: Annotated[int, msgspec.Meta(ge=0)] = 4
    location: Literal["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"] = (
        "enam"  # where the enrichment is placed: the store was seen to refuse less there
    )
    outbound_max: int = 32  # requests of the enrichment that are under way at once
    review_pages: int = 1
    review_feeds: tuple[ReviewFeed, ...] = (ReviewFeed(form="xml"), ReviewFeed(form="json"))  # tried in this order
    cluster_resolution: float = 1.0  # more finds smaller markets
    scores: Literal["founder", "article"] = "founder"  # by which markets are ranked
    research: ResearchBudget = ResearchBudget()
    volumes: Volumes = Volumes()
    mail_from: str = "pipeline@alerts.example.com"
    mail_to: str = "team@example.com"

    @property
    def alphabet(self) -> Letters:
        """The letters that keywords keep."""
        return self.letters or ("latin" if self.country in ENGLISH else "any")

    @staticmethod
    def of(systems: Mapping[str, Any]) -> Settings:
        """Reads the section of this system; what is wrong there is named."""
        try:
            settings = msgspec.convert(systems.get("appstore", {}), Settings)
        except msgspec.ValidationError as error:
            known = ", ".join(Settings.__struct_fields__)
            raise ps.BadConfig(f"[systems.appstore] in penstock.toml: {error}. Known settings: {known}.") from error
        for name, base in msgspec.structs.asdict(settings.bases).items():
            if _is_private(base):
                raise ps.BadConfig(
                    f"[systems.appstore] in penstock.toml: bases.{name} = {base!r} is not public, and the client calls "
                    "public addresses only. For a fake store run `penstock run appstore --standins`."
                )
        return settings


def _is_private(base: str) -> bool:
    host = urlsplit(base).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

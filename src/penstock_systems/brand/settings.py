"""What a deployment decides about its brands: `[systems.brand]` in penstock.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

import penstock as ps
from penstock_systems.brand.rules.posts import PLATFORMS, Platform

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
HOST = re.compile(r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")
DELAY = re.compile(r"\+(\d{1,3})([mhd])")
SECONDS = {"m": 60, "h": 3_600, "d": 86_400}

Target = Literal["pages-plus", "ghost"]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class Network(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account on a network. Its token is in the environment variable `secret_env`."""

    base_url: str
    secret_env: str
    account: str = ""  # the identifier on Bluesky, the author's URN on LinkedIn


class Ghost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A site whose Admin API key, `id:secret`, is in the environment variable `key_env`."""

    base_url: str
    key_env: str = "GHOST_ADMIN_KEY"


class Brand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fqdn: str  # its site is https://{fqdn}/blog/
    name: str = ""  # of the site, where it is not its host
    about: str = ""  # a sentence about the site
    language: Annotated[str, msgspec.Meta(pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"  # of all articles
    voice: str = "plain and helpful"
    review: Literal["always", "when_flagged", "never"] = "when_flagged"
    articles_per_day: Count = 3  # a ceiling, not a goal
    targets: tuple[Target, ...] = ("pages-plus",)
    social: dict[Platform, str] = {}  # "now", "off", or a delay such as "+2h"
    late: Literal["miss", "post"] = "miss"  # what becomes of a post that is more than an hour late
    unknown: Literal["hold", "resend"] = "hold"  # what becomes of a post that cannot be looked up
    banned: tuple[str, ...] = ()  # words that make a person look at an article
    ghost: Ghost | None = None

    @property
    def title(self) -> str:
        """The name of the site."""
        return self.name or self.fqdn

    def delay_seconds(self, platform: Platform) -> float | None:
        """Return how long after the article a post is due, or None if the brand does not post there."""
        given = self.social.get(platform, "off")
        if given in ("off", "now"):
            return 0.0 if given == "now" else None
        found = DELAY.fullmatch(given)
        assert found, given
        return float(found[1]) * SECONDS[found[2]]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    brands: dict[str, Brand] = {}
    sites: str = "sites"  # the folder of the published pages
    blobs: str = "."  # the folder of the pages that were researched, and of the articles as they were written
    pages_days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 90  # for which such a page is kept
    gateway: str = "https://apimom-router.example"  # the gateway, which holds the keys of paid services
    gateway_key_env: str = "BRAND_GATEWAY_KEY"
    allow: tuple[str, ...] = ()  # private addresses that may be called, such as that of the gateway
    allow_pages: tuple[str, ...] = ()  # private addresses whose pages may be researched, such as those of an intranet
    model: str = ""  # of the gateway; without one, articles are composed from their sources
    model_tokens: Annotated[int, msgspec.Meta(ge=100, le=100_000)] = 4_000  # at most, of one answer
    json_mode: bool = True  # ask for `response_format`, which some servers of models do not know
    pages_per_topic: Annotated[int, msgspec.Meta(ge=1, le=20)] = 4
    page_user_agent: str = "Penstock"
    networks: dict[Platform, Network] = {}

    @staticmethod
    def of(systems: Mapping[str, Any]) -> Settings:
        """Read the section of this system. Raises BadConfig with the name of a wrong setting."""
        try:
            settings = msgspec.convert(systems.get("brand", {}), Settings)
        except msgspec.ValidationError as error:
            raise ps.BadConfig(f"[systems.brand] in penstock.toml: {error}.") from error
        for slug, brand in settings.brands.items():
            problem = problem_of(settings, slug, brand)
            if problem:
                raise ps.BadConfig(f"[systems.brand.brands.{slug}] in penstock.toml: {problem}.")
        return settings


def problem_of(settings: Settings, slug: str, brand: Brand) -> str | None:
    """Return what is wrong with the settings of a brand, or None."""
    if not SLUG.fullmatch(slug):
        return f"{slug!r} is not a slug; use a to z, 0 to 9 and single dashes"
    if not HOST.fullmatch(brand.fqdn):
        return f"fqdn = {brand.fqdn!r} is not the name of a host, such as llctax.example"
    if not brand.targets:
        return 'targets is empty; articles have to go somewhere, such as ["pages-plus"]'
    if "ghost" in brand.targets and brand.ghost is None:
        return 'targets has "ghost", and [systems.brand.brands.SLUG.ghost] with its base_url is missing'
    for platform in PLATFORMS:
        given = brand.social.get(platform, "off")
        if given not in ("off", "now") and not DELAY.fullmatch(given):
            return f'social.{platform} = {given!r} is not "now", "off" or a delay such as "+30m", "+2h" or "+1d"'
        if given != "off" and platform not in settings.networks:
            return f"social.{platform} is on, and [systems.brand.networks.{platform}] is missing"
    return None

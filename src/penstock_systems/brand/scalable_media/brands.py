"""The brands: those of penstock.toml, and those that were added over HTTP."""

from __future__ import annotations

import hashlib

import msgspec

import penstock as ps
from penstock_systems.brand.app import brain, settings
from penstock_systems.brand.settings import Brand

FIND = "select id, slug, fqdn, settings from sm_brands where slug = :slug"
LIST = "select slug from sm_brands order by slug limit 1000"


class UnknownBrand(ps.Permanent):
    """No brand has this slug."""


class Known(msgspec.Struct, frozen=True):
    id: str
    slug: str
    brand: Brand


async def find_brand(slug: str) -> Known:
    """Return a brand, or raise UnknownBrand with the slugs that exist."""
    row = await brain.db.first(FIND, slug=slug)
    if slug in settings.brands:
        return Known(brand_id(slug), slug, settings.brands[slug])
    if row is None:
        raise UnknownBrand(f"There is no brand {slug!r}. Known brands: {', '.join(await list_brands()) or 'none'}.")
    return Known(row.id, row.slug, msgspec.json.decode(row.settings, type=Brand))


async def list_brands() -> list[str]:
    return sorted({*settings.brands, *await brain.db.column(LIST)})


async def save_brand(slug: str, brand: Brand) -> Known:
    """Add a brand or change it, when the current unit commits."""
    known = Known(brand_id(slug), slug, brand)
    row = {
        "id": known.id,
        "slug": slug,
        "fqdn": brand.fqdn,
        "settings": msgspec.json.encode(brand).decode(),
        "created_at": await brain.db.now(),
    }
    brain.db.upsert("sm_brands", row, key="slug", keep=("created_at",))
    return known


def brand_id(slug: str) -> str:
    return f"brand-{hashlib.sha256(slug.encode()).hexdigest()[:12]}"

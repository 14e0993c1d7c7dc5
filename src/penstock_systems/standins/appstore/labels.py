"""The labels of a product page in the languages of the storefronts."""

from __future__ import annotations

NAMES = ("seller", "size", "category", "purchases", "languages", "age", "copyright", "version", "ratings")
ENGLISH = "Seller|Size|Category|In-App Purchases|Languages|Age Rating|Copyright|Version|Ratings"
_LABELS = {
    "de": "Anbieter|Größe|Kategorie|In‑App-Käufe|Sprachen|Altersfreigabe|Copyright|Version|Bewertungen",
    "fr": "Vendeur|Taille|Catégorie|Achats intégrés|Langues|Âge|Copyright|Version|notes",
    "ja": "販売元|サイズ|カテゴリ|アプリ内課金|言語|年齢|コピーライト|バージョン|件の評価",
    "he": "ספק|גודל|קטגוריה|רכישות מתוך האפליקציה|שפות|דירוג גיל|זכויות יוצרים|גרסה|דירוגים",
}
LABELS = {
    language: dict(zip(NAMES, text.split("|"), strict=True)) for language, text in {"en": ENGLISH, **_LABELS}.items()
}


def labels(language: str) -> dict[str, str]:
    """`de-DE` and `de` are German; what nobody translated is English."""
    return LABELS.get(language.split("-")[0].casefold(), LABELS["en"])

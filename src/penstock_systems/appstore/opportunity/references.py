"""The apps that an evaluation refers to, and as what: who leads, who leads and is weak, who rises, whom people dislike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from penstock_systems.appstore.opportunity.facts import AppFacts, MarketFacts, share

Role = Literal["leader", "weak leader", "rising", "disliked"]
A_ROLE = 2  # apps
REVIEWS_LEAST = 5  # that have to be read before an app is called disliked
DISLIKED_SHARE = 40.0  # per cent of them that are unhappy


class Reference(NamedTuple):
    app: AppFacts
    role: Role


def references(facts: MarketFacts) -> list[Reference]:
    """Each app once, in the first role that fits it."""
    candidates: list[tuple[Role, Iterable[AppFacts]]] = [
        ("weak leader", sorted(facts.weak, key=lambda app: (-app.ratings, app.track_id))),
        ("leader", sorted(facts.visible, key=lambda app: (-app.ratings, app.track_id))),
        ("rising", sorted(filter(_rises, facts.apps), key=lambda app: (-(app.velocity or 0.0), app.track_id))),
        ("disliked", sorted(filter(_is_disliked, facts.apps), key=lambda app: (-_unhappy(app), app.track_id))),
    ]
    found: dict[int, Reference] = {}
    for role, apps in candidates:
        fresh = [app for app in apps if app.track_id not in found]
        found |= {app.track_id: Reference(app, role) for app in fresh[:A_ROLE]}
    return list(found.values())


def _rises(app: AppFacts) -> bool:
    return app.velocity is not None and app.velocity > 0


def _is_disliked(app: AppFacts) -> bool:
    return app.reviews >= REVIEWS_LEAST and _unhappy(app) >= DISLIKED_SHARE


def _unhappy(app: AppFacts) -> float:
    return share(app.unhappy, app.reviews)

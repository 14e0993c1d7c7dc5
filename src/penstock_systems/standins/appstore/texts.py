"""What developers write about an app: its description and what is new, and where its page and pictures are."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from penstock_systems.standins.appstore.app import FIRST_DAY, App
from penstock_systems.standins.appstore.catalogue import APPS_KEPT, Catalogue
from penstock_systems.standins.appstore.chance import Draws, mix

DESCRIPTION_CHARACTERS_MAX = 4_000
SENTENCES = (
    "{title} keeps your {0} in one place.\n",
    "Built for people who care about {1} and {2}.\n",
    "No account is needed: everything about {0} stays on your device.\n",
    "Set up {1} in a minute and see how {2} changes week by week.\n",
    "• {0} at a glance, with charts and reminders\n",
    "• Works with widgets, and shares {1} with your family\n",
    "• Export {2} whenever you like\n",
    "We read every message, so tell us what {0} should do next.\n",
    "Thousands of people already plan their {2} with {title}.\n",
)
FAN_SENTENCES = (
    "Made by fans, for everybody who loves {franchise} and {0}.\n",
    "This app has nothing to do with the owners of {franchise}.\n",
)
NEWS = ("Bug fixes and improvements.", "Fixes.", "Faster start, and {0} looks better in the dark.")


@lru_cache(APPS_KEPT)  # its record and its page say the same
def description(app: App) -> str:
    draws = Draws(app.index, 81)
    wanted = min(DESCRIPTION_CHARACTERS_MAX, 256 + int(3_744 * draws.share() ** 2))
    name = app.franchise.capitalize()
    words = [name if word == app.franchise else word for word in app.keywords]
    lines = [line.format(*words, title=app.title) for line in SENTENCES]
    text = "".join(line.format(*words, franchise=name) for line in FAN_SENTENCES) if name else ""
    while len(text) < wanted:
        chosen = draws.bits()
        for _ in range(8):
            text += lines[chosen % 9]
            chosen //= 9
    return text[:wanted].rstrip()


def notes(app: App, number: int) -> str:
    """What is new in this version; the first one says nothing."""
    return NEWS[mix(app.index, 83, number) % len(NEWS)].format(app.keywords[0]) if number else ""


def app_url(app: App, country: str) -> str:
    return f"https://apps.apple.com/{country}/app/{quote(app.slug)}/id{app.track_id}"


def developer_url(catalogue: Catalogue, app: App, country: str) -> str:
    return f"https://apps.apple.com/{country}/developer/{app.brand.casefold()}/id{catalogue.artist_id(app.developer)}"


def artwork(app: App) -> str:
    return f"https://is1-ssl.mzstatic.com/image/thumb/Purple{app.index % 200}/v4/{app.track_id:x}/AppIcon.png"


def release_text(app: App) -> tuple[str, str]:
    """As the feeds write it: with the offset of California, and spelled out."""
    released = (app.version_time(0) if app.released else FIRST_DAY).date()
    return f"{released.isoformat()}T00:00:00-07:00", f"{released:%B} {released.day}, {released.year}"

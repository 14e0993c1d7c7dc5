"""`penstock appstore`: reading what the App Store pipeline found, for people and for their programs."""

from __future__ import annotations

import click

from penstock.commands import Noun
from penstock_systems.appstore.reading import (
    commands_apps,
    commands_markets,
    commands_opportunities,
    commands_people,
    commands_reports,
)


@click.group(cls=Noun)
def appstore() -> None:
    """Read what the App Store pipeline found.

    Apps, keywords, markets and opportunities out of its database: as tables, as --json, or as --csv where it is a list.
    Looking changes nothing there. Without --database it is the one that PENSTOCK_DATABASE or penstock.toml names, or
    pipeline-db.db in this folder.

    \b
    Example:
      penstock appstore opportunities
      penstock appstore opportunity 101
      penstock appstore apps --market 101 --csv > apps.csv
      penstock appstore report --out report.html
    """


for verb in (
    commands_opportunities.opportunities,
    commands_opportunities.opportunity,
    commands_markets.clusters,
    commands_markets.cluster,
    commands_markets.trends,
    commands_apps.apps,
    commands_apps.app,
    commands_apps.keywords,
    commands_apps.keyword,
    commands_people.star,
    commands_people.unstar,
    commands_people.stars,
    commands_people.list_,
    commands_people.track,
    commands_people.untrack,
    commands_reports.report,
    commands_reports.share,
    commands_reports.shared,
    commands_reports.shares,
    commands_reports.unshare,
):
    appstore.add_command(verb)

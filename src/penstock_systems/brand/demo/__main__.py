"""`python -m penstock_systems.brand.demo`: the week in one database, then with a database for each service."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

OUT = Path(os.environ.get("OUT", "build/demo-brand"))
SEED = int(os.environ.get("SEED", "1"))
MODES = {"together": "0", "apart": "1"}


def main() -> int:
    """Run the week in both modes, each in a process of its own, and write one page about both."""
    if len(sys.argv) > 1:
        return _one(sys.argv[1])
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    settings = Path(__file__).with_name("penstock.toml").resolve()
    for mode, apart in MODES.items():
        environment = {
            **os.environ,
            "PENSTOCK_CONFIG": str(settings),
            "PENSTOCK_APART": apart,
            "OUT": str(OUT.resolve()),
        }
        command = [sys.executable, "-m", "penstock_systems.brand.demo", mode]
        ended = subprocess.run(command, env=environment, check=False).returncode
        if ended:
            return ended
    from penstock_systems.brand.demo.report import write_report

    runs = [json.loads((OUT / mode / "run.json").read_text("utf-8")) for mode in MODES]
    click.echo(f"\nThe page: {write_report(OUT, runs)}")
    return int(any(run["truth"]["posts_doubled"] for run in runs))


def _one(mode: str) -> int:
    from penstock.testing import run
    from penstock_systems.brand.demo.report import facts_of
    from penstock_systems.brand.demo.week import Day, opened

    folder = OUT / mode
    folder.mkdir(parents=True)
    os.chdir(folder)
    click.echo(f"\nOne virtual week, services {'in one database' if mode == 'together' else 'with a database each'}")
    click.echo(f"{'':10} {'dollars':>8} {'articles':>9} {'posts':>6}   messages that wait")

    def show(day: Day) -> None:
        waiting = ", ".join(f"{service} {count}" for service, count in day.waiting.items() if count) or "none"
        click.echo(f"{day.name:10} {day.usd:8.4f} {day.published:9} {day.posts:6}   {waiting}")
        for note in day.notes:
            click.echo(f"{'':12}{note}")

    found: dict[str, Any] = {}

    async def week() -> None:
        began = time.perf_counter()
        async with opened(folder, SEED) as lived:
            await lived.live(show)
            facts = await facts_of(lived, mode, time.perf_counter() - began)
        found.update(facts)

    logging.getLogger("penstock").setLevel(logging.ERROR)  # what is retried is part of the week
    run(week)
    Path("run.json").write_text(json.dumps(found), encoding="utf-8")
    figures, truth = found["figures"], found["truth"]
    click.echo(
        f"{figures['published']} articles published, {figures['rejected']} rejected, {figures['failed']} failed, "
        f"{figures['posted']} posts, {figures['missed']} missed, "
        f"{truth['posts_doubled']} doubled by the networks' count. {figures['messages']} messages, "
        f"{figures['messages_predicted']} predicted. ${figures['usd_an_article']:.4f} an article."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

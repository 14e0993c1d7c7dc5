"""`make demo-reminders`: SEED=, DAYS=, KILLS= and OUT= in the environment change the run."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path
from random import Random

import click

OUT = Path(os.environ.get("OUT") or "build/demo-reminders").resolve()
SEED = int(os.environ.get("SEED") or 1)
KILLS = int(os.environ.get("KILLS") or 20)
DAYS = int(os.environ.get("DAYS") or 28)
ARRIVALS_A_KILL = 85 * DAYS * 20 // 28 // KILLS
CONFIG = """\
history = false
synchronous = "off"

[systems.reminders]
cron = "*/5 * * * *"
public_url = "https://reminders.example.org"
endpoint_off_after = "5d"
"""


def prepare() -> None:
    """An empty folder, and the settings that the app reads when it is imported."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    (OUT / "penstock.toml").write_text(CONFIG, "utf-8")
    os.chdir(OUT)
    os.environ |= {
        "PENSTOCK_CONFIG": str(OUT / "penstock.toml"),
        "NOTIFICATIONS_RESEND_KEY": "re_fake",
        "TELEGRAM_BOT_TOKEN": "1:fake",
        "REMINDERS_SECRET": "the secret of the demonstration",
        "REMINDERS_RESEND_WEBHOOK_SECRET": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    }
    os.environ.pop("PENSTOCK_DATABASE", None)


def kills(seed: int) -> list[tuple[str, float]]:
    """Half of them right after something arrived, whose answer is lost; half at any moment."""
    random = Random(f"kills {seed}")
    drawn: list[tuple[str, float]] = []
    for number in range(KILLS):
        if number % 2:
            drawn.append(("arrival", random.randrange(5, 2 * ARRIVALS_A_KILL)))
        else:
            drawn.append(("time", random.uniform(0.2, 1.8) * DAYS * 86_400 / (KILLS + 4)))
    return drawn


def main() -> int:
    prepare()
    from penstock_systems.reminders.app import web  # the settings are read when it is imported
    from penstock_systems.reminders.demo import child, report

    began = web.clock.monotonic()

    logging.disable(logging.WARNING)
    killed: list[dict[str, object]] = []
    planned: list[tuple[str, float] | None] = [*kills(SEED), None]
    for kill in planned:
        process = os.fork()
        if process == 0:
            try:
                child.live(SEED, kill)
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        reached = child.load_course().until
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            return 1
        if os.WIFSIGNALED(status) and kill is not None:
            killed.append({"at": reached.isoformat(), "kind": kill[0]})
            click.echo(f"killed {len(killed):>2} of {KILLS}: {reached:%d %B %H:%M} of virtual time, by {kill[0]}")
        if child.load_course().is_done:
            break
    seconds = web.clock.monotonic() - began
    figures = report.write(SEED, killed, seconds)
    click.echo(f"{report.summary(figures)}\nThe page: {OUT / 'report.html'}. It took {seconds:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`penstock run` with its waits made short by option, and what the supervisor sees written to the journal."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from penstock import logs
from penstock.cli.apart import make_supervisor, supervise
from penstock.config import Config
from penstock.runtime import supervisor
from penstock.runtime.events import Events, RowsReturned, WorkerDied, WorkerWasKilled
from tests.crash.journal import JOURNAL_VARIABLE, Journal

CONSTANTS = (
    "OVERRUN_SECONDS",
    "STALL_SECONDS",
    "SILENCE_SECONDS",
    "WATCH_SECONDS",
    "RESTART_SECONDS_FIRST",
    "RESTART_SECONDS_LONGEST",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--grace", type=float)
    for name in CONSTANTS:
        parser.add_argument(f"--{name.lower().replace('_', '-')}", type=float, default=getattr(supervisor, name))
    given = parser.parse_args()
    for name in CONSTANTS:
        setattr(supervisor, name, getattr(given, name.lower()))
    journal = Journal(os.environ[JOURNAL_VARIABLE])
    events = Events()
    config = Config()
    logs.attach(events, config.log)
    for kind in (RowsReturned, WorkerDied, WorkerWasKilled):
        events.subscribe(lambda event: journal.note(event.name, **event.facts()), to=kind)
    make = partial(make_supervisor, "tests.crash.victim:app", workers=given.workers, grace=given.grace)
    return supervise(partial(make, config=config, events=events), [], None)


if __name__ == "__main__":
    sys.exit(main())

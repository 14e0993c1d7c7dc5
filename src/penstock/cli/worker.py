"""The worker process that a supervisor starts: `python -m penstock.cli.worker module:app`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from penstock.app import App
from penstock.cli.launch import serve
from penstock.cli.reference import load
from penstock.logs import attach
from penstock.model.errors import BadApp, BadConfig, BadMigration, PenstockError, StoreError, StoreReplaced
from penstock.runtime.slots import end_process
from penstock.runtime.supervisor import EXIT_REPLACED, EXIT_STORE, EXIT_USAGE

GARBAGE_THRESHOLD = (
    20_000  # new objects between two looks for garbage; the interpreter's 700 costs a tenth of the speed
)
EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="penstock.cli.worker", description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("--hello", type=int)
    parser.add_argument("--lifeline", type=int)
    parser.add_argument("--grace", type=float, default=25.0)
    parser.add_argument("--until-idle", action="store_true")
    given = parser.parse_args(arguments)
    try:
        app = load(given.reference)
        # What was loaded stays; a worker makes and drops thousands of small objects a second, most of them at once.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        attach(app.events, app.config.log)
        work = serve(
            app, grace_seconds=given.grace, until_idle=given.until_idle, hello=given.hello, lifeline=given.lifeline
        )
        _run(app, work)
    except (BadApp, BadConfig, BadMigration) as error:
        return _say(error, EXIT_USAGE)
    except StoreReplaced as error:
        return _say(error, EXIT_REPLACED)
    except StoreError as error:
        return _say(error, EXIT_STORE)
    except PenstockError as error:
        return _say(error, EXIT_FAILED)
    return 0


def _run(app: App, work: Coroutine[Any, Any, None]) -> None:
    """Run the worker. An exit in a task of user code, or a closed descriptor, breaks the event loop: then the process dies
    without releasing anything, so that what ran is suspected."""
    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(work)
        try:
            runner.run(_awaited(task))
        except BaseException as error:
            if not task.done():
                if app._life.worker is not None:
                    app._life.worker.suspect_ended()
                end_process(f"{type(error).__qualname__} ended the event loop: {error}. The worker ends at once.")
            raise


async def _awaited(task: asyncio.Task[None]) -> None:
    await task


def _say(error: PenstockError, code: int) -> int:
    sys.stderr.write(f"penstock: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

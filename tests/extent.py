"""How much is looked at: a sample and small numbers in `make test`, everything in `make both` and `make crash`."""

from __future__ import annotations

import os

EVERYTHING = "PENSTOCK_EVERYTHING" in os.environ


def examples(most: int) -> int:
    """How many examples of a property are tried: a quarter unless everything is asked for."""
    return most if EVERYTHING else most // 4

"""The libraries that clustering needs and nothing else does: what is missing is named, with how to get it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import penstock as ps


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ps.BadConfig(
            f"Markets cannot be computed without {name.partition('.')[0]}: pip install 'penstock[cluster]'."
        ) from error


# In this order: without scipy there is no numpy either, and it is scipy that people ask for.
sparse: Any = _needed("scipy.sparse")
components: Any = _needed("scipy.sparse.csgraph").connected_components
leiden: Any = _needed("graspologic_native").leiden

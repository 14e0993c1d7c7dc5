"""The limits of a unit of work are those of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.config import Config
from penstock.model.errors import UnitTooLarge
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing


@virtual
async def test_a_unit_refuses_more_calls_than_the_configured_limit() -> None:
    app = ps.App("shop", config=Config(overrides={"unit_calls_max": 2}))
    async with TestApp(app) as shop:
        with pytest.raises(UnitTooLarge, match=r"at most 2 calls \(`unit_calls_max`\)"):
            async with shop.unit():
                for number in range(3):
                    app.db.write("insert into effects (what) values (:what)", what=str(number))


@virtual
async def test_a_unit_refuses_more_bytes_than_the_configured_limit() -> None:
    app = ps.App("shop", config=Config(overrides={"unit_bytes_max": 100}))
    listings: ps.Queue[Any] = app.queue("listings")
    async with TestApp(app) as shop:
        with pytest.raises(UnitTooLarge, match=r"at most 100 bytes \(`unit_bytes_max`\)"):
            async with shop.unit():
                listings.send(Listing(name="x" * 200))

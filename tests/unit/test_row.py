"""A row of a query: its values by place and by name, and what a wrong name is answered with."""

from __future__ import annotations

import pytest

from penstock.model.row import row_type

ROW = row_type(("id", "title"))((1, "Lamp"))


def test_a_value_is_found_by_place_name_and_attribute() -> None:
    assert (ROW[1], ROW["title"], ROW.title) == ("Lamp", "Lamp", "Lamp")
    assert (ROW[-1], ROW[0:1]) == ("Lamp", (1,))
    assert ROW.asdict() == {"id": 1, "title": "Lamp"}
    assert repr(ROW) == "Row(id=1, title='Lamp')"


def test_a_wrong_name_is_answered_with_the_columns_that_there_are() -> None:
    with pytest.raises(KeyError, match="'name'; the columns are id, title"):
        _ = ROW["name"]
    with pytest.raises(AttributeError, match="no column 'name'; the columns are id, title"):
        _ = ROW.name

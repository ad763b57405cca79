"""Wilson intervals: against their definition, and at the ends."""

from __future__ import annotations

import pytest

from maskoban.evaluation.measures.share import Z95, Share, share_of


@pytest.mark.parametrize(("count", "total"), [(1, 3), (38_700, 50_000), (5, 50_000), (49_999, 50_000)])
def test_an_end_is_where_the_share_lies_z_deviations_off(count: int, total: int) -> None:
    share = share_of(count, total)
    assert share.share == count / total
    assert share.low < share.share < share.high
    for end in (share.low, share.high):
        deviation = (end * (1 - end) / total) ** 0.5
        assert abs(end - share.share) == pytest.approx(Z95 * deviation)


def test_none_and_all() -> None:
    none, every = share_of(0, 20), share_of(20, 20)
    assert none.low == 0 < none.high < 0.2
    assert 0.8 < every.low < every.high == 1


def test_nothing_to_count() -> None:
    assert share_of(0, 0) == Share(0, 0, None, 0.0, 1.0)

"""`--limit`: a typo is refused, and a kind of device that another fabric has is none."""

import pytest

from netkit.design.select import select
from netkit.errors import UsageError
from tests.judge.scenes import fabric

BUILT = fabric()


def chosen(expression: str) -> list[str]:
    return [device.name for device in select(BUILT, expression)]


@pytest.mark.parametrize("expression", ["!role=core", "!platform=eos", "role=leaf,role=spine,role=host,role=core"])
def test_what_other_fabrics_have_is_no_typo(expression: str) -> None:
    assert chosen(expression) == chosen("")


@pytest.mark.parametrize("term", ["!role=hosts", "!platform=ios", "!role=cor*", "!rail=9", "!gpu09", "!core*"])
def test_what_nothing_is_called_is_refused(term: str) -> None:
    with pytest.raises(UsageError, match="matches no device"):
        chosen(term)


@pytest.mark.parametrize("expression", ["role=core", "platform=eos", "leaf* role=core"])
def test_choosing_only_what_this_fabric_lacks_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match=r"--limit '(role=core|platform=eos)' matches no device"):
        chosen(expression)

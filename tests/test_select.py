"""`--limit`: a typo is refused, and a kind of device that only another fabric has selects nothing."""

import pytest

from netkit.design.select import select
from netkit.errors import UsageError
from tests.judge.scenes import fabric

BUILT = fabric()


def chosen(expression: str) -> list[str]:
    return [device.name for device in select(BUILT, expression)]


@pytest.mark.parametrize("expression", ["!role=core", "!platform=eos", "role=leaf,role=spine,role=host,role=core"])
def test_names_that_only_other_fabrics_have_are_no_typo(expression: str) -> None:
    assert chosen(expression) == chosen("")


@pytest.mark.parametrize("term", ["!role=hosts", "!platform=ios", "!role=cor*", "!rail=9", "!gpu09", "!core*"])
def test_an_unknown_name_is_refused(term: str) -> None:
    with pytest.raises(UsageError, match="matches no device"):
        chosen(term)


@pytest.mark.parametrize("expression", ["role=core", "platform=eos", "leaf* role=core"])
def test_selecting_only_what_this_fabric_lacks_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match=r"--limit '(role=core|platform=eos)' matches no device"):
        chosen(expression)

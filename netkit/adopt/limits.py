"""Settings that run but that no intent can have, such as a number beyond its range: the default stands in for them."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from netkit.adopt.fabric_values import Assumptions, Values
from netkit.intent import complaint
from netkit.intent.model import Intent

SETTINGS = frozenset({"hosts", "lossless", "routing", "services"})
Path = tuple[str, ...]


def within_limits(values: Values, guesses: Assumptions) -> Values:
    """Leave out what the intent refuses of these settings; `leave` then keeps it as it runs."""
    while True:
        try:
            Intent.model_validate(values)
        except ValidationError as error:
            fewer = values
            for path, message in _refused(error):
                fewer = _without(fewer, path)
                guesses.add(path[0], f"{'.'.join(path[1:])} by default: {message}")
            if fewer == values:
                return values
            values = fewer
        else:
            return values


def _refused(error: ValidationError) -> Iterator[tuple[Path, str]]:
    """Yield the path of each setting, of a list as a whole, and what is wrong with it."""
    for one in complaint.problems(error.errors(include_url=False)):
        path = _keys(one.path)
        if len(path) > 1 and path[0] in SETTINGS:
            yield path, one.message


def _keys(path: Sequence[object]) -> Path:
    found: list[str] = []
    for key in path:
        if not isinstance(key, str):
            break
        found.append(key)
    return tuple(found)


def _without(values: Values, path: Path) -> Values:
    key, *rest = path
    inner = values.get(key)
    if rest:
        return values | {key: _without(inner, tuple(rest))} if isinstance(inner, dict) else values
    return {one: value for one, value in values.items() if one != key}

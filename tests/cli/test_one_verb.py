"""The command that is built for one verb, beside the command of all."""

import pytest

from netkit.cli.app import command_of

WHOLE = command_of("")


@pytest.mark.parametrize("verb", WHOLE.commands)
def test_a_verb_is_built_alone_and_as_in_the_whole(verb: str) -> None:
    part = command_of(verb)
    assert [*part.commands] == [verb]
    assert [one.name for one in part.params] == [one.name for one in WHOLE.params]
    alone, together = part.commands[verb], WHOLE.commands[verb]
    assert [one.name for one in alone.params] == [one.name for one in together.params]
    assert [*getattr(alone, "commands", ())] == [*getattr(together, "commands", ())]

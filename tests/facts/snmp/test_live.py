"""Real agents, read through pysnmp: what they report, and why one reports nothing."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from netkit.errors import AccessError
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.platforms.snmp import Community, Credential, User, facts
from tests.facts.snmp import case
from tests.facts.snmp.agent import COMMUNITY, USER, WATCHER, look, needs_snmpd, serving, viewer

pytestmark = needs_snmpd
NO_TABLE = "walk nothing 1.3.6.1.4.1.4242.1 1,2"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnmpAgent]:
    with serving("nvue", tmp_path_factory.mktemp("agent")) as running:
        yield running


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_a_switch_reports_the_same_as_the_recorded_cases(
    platform: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serving(platform, tmp_path_factory.mktemp(platform)) as running, closing(viewer(running, USER)) as opened:
        opened.open()
        assert look(opened, platform) == case.facts(platform, case.answers(platform))


@pytest.mark.parametrize("credential", [COMMUNITY, USER], ids=["v2c", "v3"])
def test_both_versions_get_the_same_answer(agent: SnmpAgent, credential: Credential) -> None:
    with closing(viewer(agent, credential)) as opened:
        opened.open()
        assert look(opened, "nvue").modules == case.modules("nvue")


@pytest.mark.parametrize(
    ("credential", "patience_s", "why"),
    [
        (Community("public"), 3, "the community: no answer"),
        (User("stranger"), 60, "user stranger: unknown user"),
        (
            User(WATCHER.name, "wrong-secret", priv=WATCHER.priv_secret),
            60,
            "the authentication secret or protocol",
        ),
        (
            User(WATCHER.name, WATCHER.auth_secret, "sha512", WATCHER.priv_secret),
            60,
            "authentication secret or protocol",
        ),
        (User(WATCHER.name, WATCHER.auth_secret, priv="wrong-secret"), 6, "the privacy secret or protocol"),
        (User(WATCHER.name, WATCHER.auth_secret), 60, "may not read at this security level"),
        (User(WATCHER.name, "short"), 60, "its secrets need at least 8 characters"),
        (User(WATCHER.name, priv=WATCHER.priv_secret), 60, "privacy needs authentication too"),
    ],
)
def test_a_refused_credential_is_reported_with_the_reason(
    agent: SnmpAgent, credential: Credential, patience_s: float, why: str
) -> None:
    with closing(viewer(agent, credential, patience_s=patience_s)) as refused, pytest.raises(AccessError) as caught:
        refused.open()
    assert why in str(caught.value)
    assert not {WATCHER.auth_secret, WATCHER.priv_secret, "wrong-secret", "public"} & set(str(caught.value).split())


def test_the_first_accepted_credential_is_used(agent: SnmpAgent) -> None:
    with closing(viewer(agent, User("stranger"), USER)) as opened:
        opened.open()
        (reply,) = opened.ask([facts.SYSTEM])
        assert "s leaf-7" in reply.text


def test_an_unimplemented_table_is_empty_and_not_a_failure(agent: SnmpAgent) -> None:
    with closing(viewer(agent, USER)) as opened:
        opened.open()
        none, odd = opened.ask([NO_TABLE, "nv show system"])
        assert (none.text, none.failure) == ("", "")
        assert odd.failure == "not an SNMP query"


def test_an_agent_that_stops_answering_is_not_asked_for_everything(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("silent")
    with serving("frr", folder) as running, closing(viewer(running, COMMUNITY, patience_s=9)) as opened:
        opened.open()
        running.end()
        first, second = opened.ask([facts.SYSTEM, facts.IF_TABLE])
    assert (first.failure, second.failure) == ("no answer", "not queried: system got no answer")


def test_closing_from_another_thread_ends_the_request(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving("frr", tmp_path_factory.mktemp("late")) as running, closing(viewer(running, COMMUNITY)) as opened:
        opened.open()
        running.end()
        later = threading.Timer(0.5, opened.close)
        later.start()
        replies = opened.ask([facts.SYSTEM, facts.IF_TABLE])
        later.join()
    assert [reply.failure for reply in replies] == ["the connection was closed"] * 2


def test_the_repr_of_a_credential_has_no_secret() -> None:
    assert "fabric-ro" not in repr(COMMUNITY)
    assert WATCHER.auth_secret not in repr(USER)
    assert WATCHER.priv_secret not in repr(USER)

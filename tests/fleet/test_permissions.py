"""Permissions of the credentials of one site at the broker: its own jobs and answers, nothing else."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import amqp
import pytest
from amqp.exceptions import AccessRefused, AMQPError, NotAllowed

from netkit.fleet import installation
from netkit.fleet.job import MessageError, open_job, sign_job
from netkit.fleet.rabbitmq import (
    ANSWERS,
    DISPATCH,
    JOBS,
    LEASE,
    STATUS,
    TURN,
    answer_queue,
    control_queue,
    fabric_queue,
    round_queue,
)
from netkit.fleet.signing import Credentials
from tests.fleet.bed import Bed, job
from tests.fleet.rabbitmq_server import needs_rabbitmq

pytestmark = needs_rabbitmq
RUN = "ab" * 16
SITES = ("tokyo", "osaka")
THEIRS = answer_queue(RUN)
ROUND = round_queue("check of inventory/tokyo")
THEIR_LEASE = fabric_queue(LEASE, "inventory/tokyo")


def opened(bed: Bed, user: str, vhost: str, credentials: Credentials, **changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "userid": user,
        "password": credentials.password,
        "login_method": "PLAIN",
        "virtual_host": vhost,
        "connect_timeout": 10,
        "ssl": {
            "ca_certs": str(credentials.authority),
            "certfile": str(credentials.certificate),
            "keyfile": str(credentials.key),
            "server_hostname": "localhost",
        },
    }
    connection = amqp.Connection(f"localhost:{bed.server.port}", **{**arguments, **changes})
    connection.connect()
    return connection


@contextmanager
def coordinator_channel(bed: Bed, vhost: str) -> Iterator[Any]:
    connection = opened(bed, "netkit.coordinator", vhost, bed.credentials())
    try:
        yield connection.channel()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def traffic(running_fleet: Bed) -> Iterator[None]:
    """In both sites a job, an answer and a status wait; none of them may be gone when all was tried."""
    names = (JOBS, THEIRS)
    with ExitStack() as stack:
        sites = [stack.enter_context(coordinator_channel(running_fleet, f"netkit.{site}")) for site in SITES]
        for one, site in zip(sites, SITES, strict=True):
            one.queue_declare(THEIRS, durable=True, auto_delete=False)
            one.queue_bind(THEIRS, ANSWERS, RUN)
            for name in (ROUND, THEIR_LEASE, fabric_queue(TURN, "inventory/tokyo"), control_queue(RUN)):
                one.queue_declare(name, durable=True, auto_delete=False)
            one.basic_publish_confirm(amqp.Message(b"job"), exchange=DISPATCH, routing_key=JOBS)
            worker = opened(running_fleet, f"netkit.{site}", f"netkit.{site}", running_fleet.credentials(site))
            for key in (RUN, STATUS):
                worker.channel().basic_publish_confirm(amqp.Message(b"answer"), exchange=ANSWERS, routing_key=key)
            worker.close()
        yield
        counts = [one.queue_declare(name, passive=True).message_count for one in sites for name in names]
        statuses = []
        for site in SITES:
            with running_fleet.link(site) as link:
                statuses.append(link.peek_status())
        for one in sites:
            one.queue_delete(THEIRS)
            one.queue_delete(ROUND)
        for site in SITES:
            worker = opened(running_fleet, f"netkit.{site}", f"netkit.{site}", running_fleet.credentials(site))
            worker.channel().queue_purge(JOBS)
            worker.close()
        assert counts == [1] * 2 * len(names)
        assert all(b"answer" in found for found in statuses), "among what workers of other tests reported"


@pytest.fixture
def channel(fleet_bed: Bed, traffic: None) -> Iterator[Any]:  # noqa: ARG001 (what could be read)
    """Open a channel of the worker of tokyo."""
    connection = opened(fleet_bed, "netkit.tokyo", "netkit.tokyo", fleet_bed.credentials("tokyo"))
    yield connection.channel()
    connection.collect()


FORBIDDEN: dict[str, Callable[[Any], Any]] = {
    "publish to the default exchange": lambda one: one.basic_publish_confirm(
        amqp.Message(b"x"), exchange="", routing_key=THEIRS
    ),
    "publish to a queue through the default exchange": lambda one: one.basic_publish_confirm(
        amqp.Message(b"x"), exchange="", routing_key=JOBS
    ),
    "publish a job": lambda one: one.basic_publish_confirm(amqp.Message(b"x"), exchange=DISPATCH, routing_key=JOBS),
    "publish to amq.direct": lambda one: one.basic_publish_confirm(amqp.Message(b"x"), exchange="amq.direct"),
    "publish to amq.fanout": lambda one: one.basic_publish_confirm(amqp.Message(b"x"), exchange="amq.fanout"),
    "publish to amq.topic": lambda one: one.basic_publish_confirm(amqp.Message(b"x"), exchange="amq.topic"),
    "publish to amq.headers": lambda one: one.basic_publish_confirm(amqp.Message(b"x"), exchange="amq.headers"),
    "publish to the log of the broker": lambda one: one.basic_publish_confirm(
        amqp.Message(b"x"), exchange="amq.rabbitmq.trace"
    ),
    "read answers": lambda one: one.basic_get(THEIRS),
    "consume answers": lambda one: one.basic_consume(THEIRS),
    "purge answers": lambda one: one.queue_purge(THEIRS),
    "delete answers": lambda one: one.queue_delete(THEIRS),
    "read the status": lambda one: one.basic_get(STATUS),
    "consume the status": lambda one: one.basic_consume(STATUS),
    "purge the status": lambda one: one.queue_purge(STATUS),
    "delete the status": lambda one: one.queue_delete(STATUS),
    "delete a lease": lambda one: one.queue_delete(THEIR_LEASE),
    "bind a lease": lambda one: one.queue_bind(THEIR_LEASE, ANSWERS, RUN),
    "publish to a lease": lambda one: one.basic_publish_confirm(
        amqp.Message(b"x"), exchange="", routing_key=THEIR_LEASE
    ),
    "take a turn": lambda one: one.basic_consume(fabric_queue(TURN, "inventory/tokyo"), exclusive=True),
    "declare a lease": lambda one: one.queue_declare(fabric_queue(LEASE, "inventory/new"), durable=True),
    "end a job": lambda one: one.basic_publish_confirm(
        amqp.Message(b"x"), exchange=DISPATCH, routing_key=control_queue(RUN)
    ),
    "delete what is said about jobs": lambda one: one.queue_delete(control_queue(RUN)),
    "delete the queue of jobs": lambda one: one.queue_delete(JOBS),
    "delete the exchange of jobs": lambda one: one.exchange_delete(DISPATCH),
    "delete the exchange of answers": lambda one: one.exchange_delete(ANSWERS),
    "declare a queue": lambda one: one.queue_declare("mine"),
    "declare a queue that the broker names": lambda one: one.queue_declare(""),
    "declare an exclusive queue": lambda one: one.queue_declare("mine", exclusive=True),
    "declare a queue that forwards what it drops": lambda one: one.queue_declare(
        "mine", arguments={"x-dead-letter-exchange": ANSWERS}
    ),
    "declare an exchange": lambda one: one.exchange_declare("mine", "fanout"),
    "declare an exchange that passes on what it cannot route": lambda one: one.exchange_declare(
        "mine", "direct", arguments={"alternate-exchange": ANSWERS}
    ),
    "begin a round": lambda one: one.queue_declare(ROUND),
    "end a round": lambda one: one.queue_delete(ROUND),
    "hold a round": lambda one: one.basic_consume(ROUND),
    "bind answers to jobs": lambda one: one.queue_bind(THEIRS, DISPATCH, JOBS),
    "bind the queue of jobs": lambda one: one.queue_bind(JOBS, ANSWERS, "#"),
    "unbind answers": lambda one: one.queue_unbind(THEIRS, ANSWERS, RUN),
    "unbind the status": lambda one: one.queue_unbind(STATUS, ANSWERS, STATUS),
    "bind exchanges": lambda one: one.exchange_bind(ANSWERS, DISPATCH, "#"),
    "bind exchanges the other way": lambda one: one.exchange_bind(DISPATCH, ANSWERS, "#"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_worker_may_not(what: str, channel: Any) -> None:
    with pytest.raises(AccessRefused, match=r"refused for user 'netkit\.tokyo'"):
        FORBIDDEN[what](channel)


def test_a_worker_may_read_its_jobs_and_write_its_answers(fleet_bed: Bed, channel: Any) -> None:
    message = channel.basic_get(JOBS)
    assert bytes(message.body) == b"job"
    channel.basic_publish_confirm(amqp.Message(b"second answer"), exchange=ANSWERS, routing_key=RUN)
    channel.basic_reject(message.delivery_tag, requeue=True)
    with coordinator_channel(fleet_bed, "netkit.tokyo") as theirs:
        first, second = theirs.basic_get(THEIRS), theirs.basic_get(THEIRS)
        assert [bytes(one.body) for one in (first, second)] == [b"answer", b"second answer"]
        theirs.basic_ack(second.delivery_tag)
        theirs.basic_reject(first.delivery_tag, requeue=True)


@pytest.mark.parametrize("vhost", ["netkit.osaka", "/"])
def test_a_worker_enters_no_other_virtual_host(vhost: str, fleet_bed: Bed) -> None:
    credentials = fleet_bed.credentials("tokyo")
    with pytest.raises((AMQPError, OSError)) as caught:
        opened(fleet_bed, "netkit.tokyo", vhost, credentials)
    assert isinstance(caught.value, NotAllowed) or "closed connection" in str(caught.value)


@pytest.mark.parametrize(
    ("user", "password"),
    [("netkit.osaka", None), ("netkit.coordinator", None), ("netkit.tokyo", "wrong"), ("guest", "guest")],
)
def test_a_worker_cannot_log_in_as_another_user(user: str, password: str | None, fleet_bed: Bed) -> None:
    credentials = fleet_bed.credentials("tokyo")
    for vhost in ("netkit.tokyo", "netkit.osaka", "/"):
        with pytest.raises(AccessRefused, match="Login was refused"):
            opened(fleet_bed, user, vhost, credentials, password=password or credentials.password)


def test_there_is_no_other_user(fleet_bed: Bed) -> None:
    assert sorted(fleet_bed.server.control("list_users").split()[2:]) == sorted(
        ["netkit.coordinator", "[]", "netkit.osaka", "[]", "netkit.tokyo", "[]"]
    )


def tried(bed: Bed, context: ssl.SSLContext, host: str = "localhost") -> bytes:
    """Return the first bytes of the broker to a client that begins to speak AMQP."""
    with (
        socket.create_connection(("127.0.0.1", bed.server.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=host) as shielded,
    ):
        shielded.sendall(b"AMQP\x00\x00\x09\x01")
        return shielded.recv(8)


def trusting(bed: Bed) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(bed.credentials("tokyo").authority))


def test_a_client_with_a_certificate_is_spoken_to(fleet_bed: Bed) -> None:
    context = trusting(fleet_bed)
    context.load_cert_chain(fleet_bed.credentials("tokyo").certificate, fleet_bed.credentials("tokyo").key)
    assert tried(fleet_bed, context)[:1] == b"\x01"


def test_a_client_without_a_certificate_is_refused(fleet_bed: Bed) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError), match=r"certificate required|reset|EOF"):
        tried(fleet_bed, trusting(fleet_bed))


def test_a_client_of_another_authority_is_refused(fleet_bed: Bed) -> None:
    stranger = installation.issue(installation.new_authority("netkit fleet"), "netkit.tokyo")
    pair = fleet_bed.folder / "stranger.pem"
    pair.write_bytes(stranger.certificate + stranger.key)
    context = trusting(fleet_bed)
    context.load_cert_chain(pair)
    with pytest.raises((ssl.SSLError, ConnectionError), match=r"unknown ca|bad certificate|reset|EOF"):
        tried(fleet_bed, context)


def test_a_client_certificate_is_not_accepted_from_a_server(fleet_bed: Bed) -> None:
    """A stolen worker cannot pose as the broker: its certificate is for clients, and of another name."""
    credentials = fleet_bed.credentials("osaka")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(credentials.certificate, credentials.key)
    client = trusting(fleet_bed)
    to_client, to_server, from_client, from_server = (ssl.MemoryBIO() for _ in range(4))
    del to_client, from_server
    shielded = client.wrap_bio(to_server, from_client, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        shielded.do_handshake()
    posing = server.wrap_bio(from_client, to_server, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        posing.do_handshake()
    with pytest.raises(ssl.SSLCertVerificationError):
        shielded.do_handshake()


def test_the_broker_does_not_speak_without_tls(fleet_bed: Bed) -> None:
    with socket.create_connection(("127.0.0.1", fleet_bed.server.port), timeout=10) as plain:
        plain.sendall(b"AMQP\x00\x00\x09\x01")
        assert not plain.recv(100).startswith((b"AMQP", b"\x01"))


def test_an_oversized_message_is_refused(channel: Any) -> None:
    with pytest.raises(AMQPError, match="larger than configured max size"):
        channel.basic_publish_confirm(amqp.Message(bytes(3 * 2**20)), exchange=ANSWERS, routing_key=RUN)


def test_jobs_of_a_worker_are_not_signed_by_a_coordinator(fleet_bed: Bed) -> None:
    """A stolen worker that could publish to a queue of jobs would still be no coordinator."""
    one = job("osaka")
    message = sign_job(one, fleet_bed.credentials("tokyo").signing)
    with pytest.raises(MessageError, match="no coordinator"):
        open_job(message, fleet_bed.settings.coordinator.keys, "osaka", one.issued_s)

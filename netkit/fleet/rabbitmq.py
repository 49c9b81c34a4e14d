"""What RabbitMQ is configured with: a virtual host, two exchanges and two queues for each site, and who may use them.

Each site has its own virtual host because the permissions of RabbitMQ do not cover everything: anyone in a virtual
host can ask for the length of every queue there.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from netkit.fleet import answer
from netkit.fleet.job import LONGEST_S
from netkit.fleet.settings import COORDINATOR, FleetSettings

DISPATCH, ANSWERS = "dispatch", "answers"
"""Exchanges in the virtual host of each site, for jobs and for what workers send."""
JOBS, STATUS = "jobs", "status"
"""Queues there. None has the name of an exchange: a permission to read the queue would allow to bind the exchange."""
ROUNDS = "rounds"
"""Prefix of the queues of rounds. They hold no messages: the existence of the queue is the lock."""
RUN = "[0-9a-f]{32}"
DELIVERY_LIMIT = 20
CONSUMER_TIMEOUT_MS = (LONGEST_S + 3600) * 1000
"""RabbitMQ closes the channel of a consumer that does not acknowledge in time; by default after 30 minutes."""
JOB_LIMITS = {
    "x-queue-type": "quorum",
    "x-delivery-limit": DELIVERY_LIMIT,
    "x-max-length": 100_000,
    "x-max-length-bytes": 2**30,
    "x-overflow": "reject-publish",
}
ANSWER_LIMITS = {"x-expires": 300_000, "x-max-length-bytes": 2**28, "x-overflow": "reject-publish"}
"""Of the queue of a coordinator's run; it outlives a lost connection by five minutes."""
ROUND_LIMITS = {"x-expires": 330_000}
"""Of the queue of a round: it outlives a lost coordinator for as long as workers may continue its jobs,
which is until half a minute after its queue of answers has expired."""
ENDED_LIMITS = {"x-expires": 40_000}
"""Of the queue of a round that was given up: as long as workers may take to notice."""
STATUS_LIMITS = {"x-max-length": 256, "x-message-ttl": 60_000}
CONTROL, LEASE, TURN = "control", "lease", "turn"
"""Queues that the coordinator declares: for each of its runs that changes devices, and two for each fabric.

What they hold is of no interest for LEASE and TURN: the only consumer of the queue is who may change the fabric."""
CONTROL_LIMITS = {"x-expires": LONGEST_S * 1000, "x-max-length": 16}


def answer_queue(run: str) -> str:
    return f"{ANSWERS}.{run}"


def round_queue(name: str) -> str:
    return f"{ROUNDS}.{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def ended_round_queue(name: str) -> str:
    return round_queue(f"ended {name}")


def control_queue(run: str) -> str:
    """The queue of what the coordinator has to say about a job that runs."""
    return f"{CONTROL}.{run}"


def fabric_queue(kind: str, fabric: str) -> str:
    """The queue whose only consumer may change a fabric at a site (LEASE), or have its sites do it (TURN)."""
    return f"{kind}.{hashlib.sha256(fabric.encode()).hexdigest()[:32]}"


def site_permissions(user: str, vhost: str) -> dict[str, str]:
    """Allow to read jobs and what is said about them, to hold leases, and to write answers."""
    read = rf"^({JOBS}|({CONTROL}|{LEASE})\.{RUN})$"
    return {"user": user, "vhost": vhost, "configure": "^$", "write": f"^{ANSWERS}$", "read": read}


def coordinator_permissions(user: str, vhost: str) -> dict[str, str]:
    """Allow to write jobs, to read answers and status, and to hold rounds and turns."""
    own = rf"({ANSWERS}|{CONTROL}|{LEASE}|{ROUNDS}|{TURN})\.{RUN}"
    return {
        "user": user,
        "vhost": vhost,
        "configure": f"^{own}$",
        "write": f"^({DISPATCH}|{own})$",
        "read": f"^({DISPATCH}|{ANSWERS}|{own}|{STATUS})$",
    }


def definitions(settings: FleetSettings, sites: Iterable[str], passwords: Mapping[str, str]) -> dict[str, Any]:
    """What RabbitMQ imports: everything about some sites, and the users whose passwords are given."""
    found: dict[str, list[dict[str, Any]]] = {
        "vhosts": [],
        "users": [_user(settings.user(name), password) for name, password in passwords.items()],
        "permissions": [],
        "parameters": [],
        "exchanges": [],
        "queues": [],
        "bindings": [],
    }
    for site in sites:
        vhost = settings.virtual_host(site)
        place = {"vhost": vhost, "durable": True, "auto_delete": False}
        found["vhosts"].append({"name": vhost})
        found["permissions"] += [
            site_permissions(settings.user(site), vhost),
            coordinator_permissions(settings.user(COORDINATOR), vhost),
        ]
        limits = {"max-connections": 256, "max-queues": 256}
        found["parameters"].append({"vhost": vhost, "component": "vhost-limits", "name": "limits", "value": limits})
        found["exchanges"] += [
            {"name": name, **place, "type": "direct", "internal": False, "arguments": {}}
            for name in (DISPATCH, ANSWERS)
        ]
        found["queues"] += [
            {"name": JOBS, **place, "arguments": JOB_LIMITS},
            {"name": STATUS, **place, "arguments": STATUS_LIMITS},
        ]
        found["bindings"] += [_binding(vhost, DISPATCH, JOBS), _binding(vhost, ANSWERS, STATUS)]
    return {"rabbit_version": "3.10.8", "policies": [], **found}


def _user(name: str, password: str) -> dict[str, Any]:
    salt = os.urandom(4)
    digest = salt + hashlib.sha256(salt + password.encode()).digest()
    return {
        "name": name,
        "password_hash": base64.b64encode(digest).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": [],
        "limits": {"max-connections": 256, "max-channels": 512},
    }


def _binding(vhost: str, source: str, queue: str) -> dict[str, Any]:
    place = {"source": source, "vhost": vhost, "destination": queue, "destination_type": "queue"}
    return {**place, "routing_key": queue, "arguments": {}}


def configuration(folder: PurePath, listener: str) -> str:
    """rabbitmq.conf: TLS only, with certificates of both ends, and the definitions of a folder."""
    return f"""\
# Written by `netkit fleet init`.
listeners.tcp = none
listeners.ssl.1 = {listener}
ssl_options.cacertfile = {folder / "ca.pem"}
ssl_options.certfile = {folder / "server.pem"}
ssl_options.keyfile = {folder / "server.key"}
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
auth_mechanisms.1 = PLAIN
load_definitions = {folder / "definitions.json"}
# The longest job, and an hour: a worker acknowledges a job when it has answered it.
consumer_timeout = {CONSUMER_TIMEOUT_MS}
max_message_size = {2 * answer.MOST_BYTES}
"""

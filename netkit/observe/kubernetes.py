"""Read a Kubernetes cluster: from saved JSON of kubectl, or with the official client. Nothing is changed."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import yaml

from netkit.errors import CheckError, Problem
from netkit.facts.cluster import Pod, PodNic, PodRoute

Object = Mapping[str, Any]
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NETWORKS, STATUS = "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/network-status"
MOST_BYTES = 512 * 1024 * 1024
PATHS: Mapping[str, str] = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "ConfigMap": "/api/v1/configmaps",
    "NicClusterPolicy": "/apis/mellanox.com/v1alpha1/nicclusterpolicies",
    "NicNodePolicy": "/apis/mellanox.com/v1alpha1/nicnodepolicies",
    "HostDeviceNetwork": "/apis/mellanox.com/v1alpha1/hostdevicenetworks",
    "MacvlanNetwork": "/apis/mellanox.com/v1alpha1/macvlannetworks",
    "NicConfigurationTemplate": "/apis/configuration.net.nvidia.com/v1alpha1/nicconfigurationtemplates",
    "NicInterfaceNameTemplate": "/apis/configuration.net.nvidia.com/v1alpha1/nicinterfacenametemplates",
    "SriovNetworkNodePolicy": "/apis/sriovnetwork.openshift.io/v1/sriovnetworknodepolicies",
    "SriovNetworkNodeState": "/apis/sriovnetwork.openshift.io/v1/sriovnetworknodestates",
    "SriovNetwork": "/apis/sriovnetwork.openshift.io/v1/sriovnetworks",
    "NetworkAttachmentDefinition": "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
    "CIDRPool": "/apis/nv-ipam.nvidia.com/v1alpha1/cidrpools",
    "IPPool": "/apis/nv-ipam.nvidia.com/v1alpha1/ippools",
    "SpectrumXRailPoolConfig": "/apis/spectrumx.nvidia.com/v1alpha2/spectrumxrailpoolconfigs",
    "Topology": "/apis/kueue.x-k8s.io/v1beta2/topologies",
    "ResourceFlavor": "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
    "ClusterQueue": "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "LocalQueue": "/apis/kueue.x-k8s.io/v1beta2/localqueues",
    "HyperNode": "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
}
"""Where each kind is listed, in all namespaces."""
VERSIONS = {kind: path.split("/", 2)[2].rpartition("/")[0] for kind, path in PATHS.items()}
CORE = {
    "Node": "list_node",
    "Pod": "list_pod_for_all_namespaces",
    "ConfigMap": "list_config_map_for_all_namespaces",
}
"""Methods of the client for kinds of Kubernetes itself."""
OF_PODS = ("Pod", "SriovNetworkNodeState")
"""Kinds by which pods are judged."""
OWNED = tuple(kind for kind in PATHS if kind not in {*OF_PODS, "Node", "NicClusterPolicy"})
"""Kinds whose objects have the labels of their owner. A cluster has one NicClusterPolicy, which fabrics share."""
REFUSED = 400
NOT_FOUND, UNKNOWN = 404, "unknown kind in the cluster"
PAGE, LONGEST = 500, 200
TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The objects of a cluster, and the kinds that could not be read."""

    objects: Sequence[Object] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    unsearched: Mapping[str, str] = field(default_factory=dict)
    """Kinds whose objects with the labels of an owner could not be looked for."""


def reads(group: str, kind: str) -> bool:
    """Report whether an API server is asked for this kind."""
    return kind in VERSIONS and VERSIONS[kind].rpartition("/")[0] == group


def group_of(one: Object) -> str:
    return str(one.get("apiVersion", "")).rpartition("/")[0]


def read_cluster(file: Path, kinds: Collection[str], owner: Mapping[str, str] = MappingProxyType({})) -> ClusterReading:
    """Read objects from a file: what `kubectl get -o json` printed, or a kubeconfig, whose cluster is asked.

    The cluster is asked for all objects of some kinds, and for those of the others that have the labels of `owner`.
    """
    documents = _documents(file)
    if len(documents) == 1 and documents[0].get("kind") == "Config" and "clusters" in documents[0]:
        return _asked(file, kinds, owner)
    found = tuple(one for document in documents for one in _items(document))
    if not found:
        raise CheckError(Problem("contains no Kubernetes object", _REMEDY, file=str(file)))
    return ClusterReading(found)


_REMEDY = "save what kubectl get KINDS -A -o json prints, or name a kubeconfig"


def _documents(file: Path) -> Sequence[dict[str, Any]]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise CheckError(Problem(f"has more than {MOST_BYTES:,} bytes", _REMEDY, file=str(file)))
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckError(
            Problem(f"cannot be read: {(error.strerror or '').lower()}", _REMEDY, file=str(file))
        ) from None
    except ValueError:
        raise CheckError(Problem("is not text", _REMEDY, file=str(file))) from None
    try:
        is_json = text.lstrip()[:1] in {"{", "["}
        found = [json.loads(text)] if is_json else list(yaml.load_all(text, Loader))
    except (ValueError, yaml.YAMLError, RecursionError):
        raise CheckError(Problem("is neither JSON nor YAML", _REMEDY, file=str(file))) from None
    return [one for one in found if isinstance(one, dict)]


def _items(document: dict[str, Any]) -> Iterator[Object]:
    items = document.get("items")
    if isinstance(items, list):
        # A list of one kind leaves the kind and version of its items out.
        left_out = {"kind": str(document.get("kind", "")).removesuffix("List")}
        if document.get("apiVersion") and left_out["kind"]:
            left_out["apiVersion"] = str(document["apiVersion"])
        found = [item if "kind" in item else {**left_out, **item} for item in _dicts(items)]
    else:
        found = [document]
    yield from (one for one in found if isinstance(one.get("kind"), str) and isinstance(one.get("metadata"), dict))


def _asked(file: Path, kinds: Collection[str], owner: Mapping[str, str]) -> ClusterReading:
    try:
        client, config, urllib3 = map(import_module, ("kubernetes.client", "kubernetes.config", "urllib3"))
    except ImportError:
        remedy = 'pip install "netkit-fabric[kubernetes]", or save what kubectl get -o json prints'
        raise CheckError(Problem("asking a cluster needs the Kubernetes client", remedy)) from None
    try:
        api = config.new_client_from_config(str(file))
    except Exception as error:  # the client raises many kinds, of broken YAML too
        raise CheckError(Problem(f"is not a usable kubeconfig: {_first(error)}", _REMEDY, file=str(file))) from None
    objects: list[Object] = []
    unread: dict[str, str] = {}
    selector = ",".join(f"{key}={value}" for key, value in owner.items())
    others = [kind for kind in OWNED if kind not in kinds] if owner else []
    with api:
        for kind in (*kinds, *others):
            try:
                objects += _listed(client, api, kind, selector if kind in others else "")
            except client.exceptions.ApiException as error:
                if not error.status:  # TLS failed, so that no kind can be read
                    raise _unanswered(file, " ".join(str(error.reason).split())) from None
                unread[kind] = UNKNOWN if error.status == NOT_FOUND else f"the API server answers {error.status}"
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                raise _unanswered(file, _first(error)) from None
    return ClusterReading(
        tuple(objects),
        {kind: why for kind, why in unread.items() if kind in kinds},
        {kind: why for kind, why in unread.items() if kind in others and why != UNKNOWN},
    )


def _unanswered(file: Path, why: str) -> CheckError:
    what = f"the API server of {file} does not answer: {why[:LONGEST]}"
    return CheckError(Problem(what, "check server and network, or save what kubectl prints"))


def _listed(client: ModuleType, api: Any, kind: str, selector: str) -> Iterator[Object]:
    """Yield the objects of a kind, page by page."""
    more: dict[str, str] = {"label_selector": selector} if selector else {}
    while True:
        how: dict[str, Any] = {"limit": PAGE, "_request_timeout": TIMEOUT_S, **more}
        if kind in CORE:
            # As JSON: the client's own types refuse objects of newer clusters as a whole.
            answer = getattr(client.CoreV1Api(api), CORE[kind])(**how, _preload_content=False)
            if answer.status >= REFUSED:
                raise client.exceptions.ApiException(status=answer.status)
            page = json.loads(answer.data or answer.read())
        else:
            group, version, plural = PATHS[kind].split("/")[2:]
            page = client.CustomObjectsApi(api).list_cluster_custom_object(group, version, plural, **how)
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise ValueError(f"no list of {kind}")
        yield from _items({**page, "kind": f"{kind}List", "apiVersion": VERSIONS[kind]})
        rest = _at(page, "metadata", "continue")
        if not rest:
            return
        more["_continue"] = str(rest)


def _first(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:LONGEST] if lines else type(error).__name__


def pods(objects: Iterable[Object], networks: Iterable[str]) -> Iterator[Pod]:
    """Yield the pods on nodes that ask for a network of a rail; `networks` are namespace and name."""
    known = set(networks)
    for one in objects:
        phase, node = _at(one, "status", "phase"), str(_at(one, "spec", "nodeName") or "")
        if one.get("kind") != "Pod" or not (phase == "Running" or (phase == "Pending" and node)):
            continue
        namespace, annotations = str(_at(one, "metadata", "namespace") or ""), _at(one, "metadata", "annotations")
        asked, reported = (str(_at(annotations, key) or "") for key in (NETWORKS, STATUS))
        wanted = tuple(name for name in _wanted(asked, namespace) if name in known)
        if wanted:
            yield Pod(
                f"{namespace}/{_at(one, 'metadata', 'name')}",
                node,
                wanted,
                tuple(nic for nic in _nics(reported) if nic.network in known),
                phase,
                _seconds(_at(one, "status", "startTime")),
                _waiting(one),
            )


def _seconds(time: Any) -> float:
    try:
        return datetime.fromisoformat(str(time)).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _waiting(pod: Object) -> str:
    """The first reason for which a container of a pod waits."""
    statuses = (
        status for kind in ("initContainerStatuses", "containerStatuses") for status in _dicts(_at(pod, "status", kind))
    )
    return next((str(reason) for one in statuses if (reason := _at(one, "state", "waiting", "reason"))), "")


def _wanted(text: str, namespace: str) -> Iterator[str]:
    """Yield the networks of an annotation, which is a list of names or JSON."""
    if text.lstrip().startswith("["):
        for one in _json_list(text):
            yield f"{one.get('namespace') or namespace}/{one.get('name')}"
        return
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = part.partition("@")[0]
        yield name if "/" in name else f"{namespace}/{name}"


def _nics(text: str) -> Iterator[PodNic]:
    for one in _json_list(text):
        addresses = one.get("ips")
        yield PodNic(
            str(one.get("name", "")),
            str(one.get("interface", "")),
            tuple(map(str, addresses)) if isinstance(addresses, list) else (),
            str(_at(one, "device-info", "pci", "pci-address") or ""),
        )


def _json_list(text: str) -> Sequence[dict[str, Any]]:
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else ()


def virtual_functions(objects: Iterable[Object]) -> dict[str, dict[str, str]]:
    """The NIC of each virtual function by node, as the SR-IOV operator reports it."""
    found: dict[str, dict[str, str]] = {}
    for one in objects:
        if one.get("kind") != "SriovNetworkNodeState":
            continue
        node = str(_at(one, "metadata", "name"))
        interfaces = _at(one, "status", "interfaces")
        if isinstance(interfaces, list):
            found.setdefault(node, {})
        for nic in _dicts(interfaces):
            for function in _dicts(nic.get("Vfs")):
                if function.get("pciAddress"):
                    found[node][str(function["pciAddress"])] = str(nic.get("pciAddress", ""))
    return found


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _dicts(value: Any) -> Sequence[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else ()


def pod_routes(text: str) -> tuple[PodRoute, ...]:
    """Read what `ip -json -4 route show table all` prints in a pod: its routes by a gateway."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckError(Problem("ip route did not print JSON", "update iproute2 in the image")) from None
    return tuple(
        PodRoute(_prefix(str(one.get("dst", ""))), str(one["gateway"]), str(one.get("dev", "")))
        for one in _dicts(found)
        if one.get("gateway")
    )


def _prefix(text: str) -> str:
    if text == "default":
        return "0.0.0.0/0"
    return text if "/" in text else f"{text}/32"

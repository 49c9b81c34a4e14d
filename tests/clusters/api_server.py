"""A Kubernetes API server on loopback that lists objects and patches nodes, as far as the official client needs."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from netkit.observe.kubernetes import PATHS

TOKEN = "a-token-for-tests"  # noqa: S105 (of this server alone)
Object = Mapping[str, Any]
NODES = {
    "name": "nodes",
    "singularName": "node",
    "namespaced": False,
    "kind": "Node",
    "verbs": ["get", "list", "patch"],
}
DISCOVERY: Mapping[str, Object] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [NODES]},
}
"""The requests of kubectl before it finds nodes."""


@dataclass
class Api:
    """A running server."""

    port: int = 0
    lists: dict[str, Sequence[Object]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    page: int = 500
    asked: list[str] = field(default_factory=list)

    def kubeconfig(self, folder: Path, token: str = TOKEN) -> Path:
        """Write a kubeconfig for this server."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file


@contextmanager
def api_server(objects: Sequence[Object]) -> Iterator[Api]:
    """Serve objects; kinds without any are unknown to the server, except for those that every cluster has."""
    api = Api(lists={"Pod": []})
    for one in objects:
        api.lists[one["kind"]] = [*api.lists.get(one["kind"], ()), one]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def patched(node: Object, patch: Object) -> None:
    """Apply a merge patch to a node: its taints are replaced together."""
    for kind, given in patch.get("metadata", {}).items():
        for key, value in given.items():
            node["metadata"][kind].pop(key, None)
            node["metadata"][kind].update({key: value} if value is not None else {})
    if "taints" in patch.get("spec", {}):
        node["spec"]["taints"] = patch["spec"]["taints"] or []


def _is_selected(one: Object, selector: str) -> bool:
    wanted = dict(part.split("=") for part in selector.split(",") if part)
    return wanted.items() <= dict(one["metadata"].get("labels", {})).items()


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    kinds = {path: kind for kind, path in PATHS.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path in DISCOVERY:
                self._answer(200, DISCOVERY[url.path])
                return
            if url.path.startswith(f"{PATHS['Node']}/"):
                self._node(url.path)
                return
            kind = kinds.get(url.path, "")
            api.asked.append(kind)
            code = 401 if self.headers["Authorization"] != f"Bearer {TOKEN}" else api.refused.get(kind, 200)
            if code == 200 and kind not in api.lists:
                code = 404
            if code != 200:
                self._answer(code, {"kind": "Status", "code": code})
                return
            query = parse_qs(url.query)
            begin = int(query.get("continue", ["0"])[0])
            found = [one for one in api.lists[kind] if _is_selected(one, query.get("labelSelector", [""])[0])]
            rest = begin + api.page < len(found)
            # As a real server does, omit the kind of each item.
            items = [
                {key: value for key, value in one.items() if key not in {"kind", "apiVersion"}}
                for one in found[begin : begin + api.page]
            ]
            metadata = {"continue": str(begin + api.page)} if rest else {}
            self._answer(200, {"kind": f"{kind}List", "metadata": metadata, "items": items})

        def do_PATCH(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._node(urlsplit(self.path).path, data)

        def _node(self, path: str, patch: Object = MappingProxyType({})) -> None:
            """Answer with a node after a patch."""
            name = path.rpartition("/")[2]
            node = next((one for one in api.lists.get("Node", ()) if one["metadata"]["name"] == name), None)
            if node is None:
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound"}
                self._answer(404, {**status, "message": f'nodes "{name}" not found'})
                return
            patched(node, patch)
            self._answer(200, node)

        def _answer(self, code: int, document: Object) -> None:
            data = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler

"""A node that is an EOS switch."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from netkit.lab.node import Node, RefusedError
from netkit.lab.personalities.eos import eapi, gnmi, shell
from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personalities.eos.switch_state import management_vrf
from netkit.lab.personality import Call, Elem, Personality, Told

CONFIGS = ("eos.cfg", "startup-config")


class Eos(Personality):
    """EOS: eAPI over HTTPS, and the CLI behind `Cli` and `FastCli`."""

    programs: ClassVar[tuple[str, ...]] = ("Cli", "FastCli")
    login: ClassVar[str] = "admin"
    https_port: ClassVar[int] = 443

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.machine = Machine(node)

    def provision(self, files: Mapping[str, str]) -> None:
        """Make a rendered configuration the startup-config."""
        unknown = sorted(set(files) - set(CONFIGS))
        found = [files[name] for name in CONFIGS if name in files]
        if unknown or len(found) != 1:
            raise RefusedError(f"EOS takes one of {' or '.join(CONFIGS)}; got {', '.join(sorted(files)) or 'nothing'}")
        self.machine.load_startup(found[0])

    def boot(self) -> None:
        """Become what the startup-config says."""
        self.machine.boot()

    def run(self, call: Call) -> int:
        """Answer the CLI."""
        return shell.run(self.machine, call)

    def stop(self) -> None:
        """Go down: what waits for its confirmation waits no more."""
        self.machine.stop()

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
        """Yield what OpenConfig's models have below a path."""
        del target  # EOS has one tree
        yield from gnmi.told(self.machine, path)

    @property
    def fail_apply_quietly(self) -> bool:
        """Whether commits say that they succeeded and change nothing: a fault of the lab."""
        return self.machine.loses_commits

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_wanted: bool) -> None:
        self.machine.loses_commits = is_wanted

    @property
    def serves_https(self) -> bool:
        """Whether eAPI answers: it is off until the configuration turns it on where the management interface is."""
        api = self.machine.running.section("management", "api", "http-commands")
        if api.is_off("protocol", "https") or not api.is_off("shutdown"):
            return False
        vrf = management_vrf(self.machine.running)
        return vrf == "default" or api.section("vrf", vrf).is_off("shutdown")

    def https(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, user: str = "admin"
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Answer a request on port 443 whose user the lab has let in."""
        del headers
        if not self.serves_https:
            return 503, {"Content-Type": "text/plain"}, b"eAPI is not enabled\n"
        return eapi.http(self.machine, method, path, body, user)

    def eapi(self, body: bytes, user: str = "admin") -> bytes:
        """Answer one eAPI request."""
        return eapi.answer(self.machine, body, user)

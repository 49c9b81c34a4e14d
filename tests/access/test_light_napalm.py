"""NAPALM is imported only as far as needed, and the rest on access."""

import subprocess
import sys

LIGHT = "from netkit.access.connect import prepare; prepare(); "


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_driver_is_imported_without_those_of_other_vendors() -> None:
    code = LIGHT + "import sys, netkit.platforms.nvue.driver as d; print('napalm.junos' in sys.modules, d.NvueDriver)"
    assert said(code) == "False <class 'netkit.platforms.nvue.driver.NvueDriver'>"


def test_the_rest_is_imported_on_access() -> None:
    code = LIGHT + (
        "import netkit.platforms.nvue.driver as d, napalm; "
        "print(napalm.get_network_driver('nvue') is d.NvueDriver, napalm.get_network_driver('junos').__name__, "
        "issubclass(d.NvueDriver, napalm.base.NetworkDriver), napalm.__version__ != '', type(napalm).__name__)"
    )
    assert said(code) == "True JunOSDriver True True module"


def test_an_already_imported_package_stays() -> None:
    code = "import napalm; " + LIGHT + "import sys; print(sys.modules['napalm'] is napalm, type(napalm).__name__)"
    assert said(code) == "True module"


def test_a_missing_attribute_raises_as_usual() -> None:
    code = LIGHT + "import napalm; print(hasattr(napalm, 'nothing_such'), hasattr(napalm, 'SUPPORTED_DRIVERS'))"
    assert said(code) == "False True"


def test_netmiko_is_imported_without_its_device_types_until_they_are_used() -> None:
    code = LIGHT + (
        "import sys, netkit.platforms.nvue.driver, netmiko; "
        "print('netmiko.cisco' in sys.modules, 'invoke.runners' in sys.modules, 'lxml.etree' in sys.modules); "
        "from netmiko import ConnectHandler, BaseConnection, NetmikoAuthenticationException\n"
        "try: ConnectHandler(device_type='nothing such')\n"
        "except ValueError as error: print('Unsupported' in str(error))\n"
        "import invoke, napalm.base.helpers as helpers; print(invoke.run.__name__, helpers.mac('0:0:0:0:0:1'))"
    )
    assert said(code).splitlines() == ["False False False", "True", "run 00:00:00:00:00:01"]


def test_several_threads_may_import_drivers_at_once() -> None:
    code = LIGHT + (
        "import importlib, threading; names = ['nvue', 'sonic', 'eos', 'frr', 'linux'] * 4\n"
        "work = lambda name: importlib.import_module(f'netkit.platforms.{name}.driver')\n"
        "all_ = [threading.Thread(target=work, args=(name,)) for name in names]\n"
        "[one.start() for one in all_]; [one.join(100) for one in all_]; print(any(one.is_alive() for one in all_))"
    )
    assert said(code) == "False"


def test_a_coordinator_of_a_fleet_imports_no_ssh() -> None:
    code = "import sys, netkit.fleet.checking; print({'paramiko', 'netmiko', 'napalm'} & sys.modules.keys() or 'none')"
    assert said(code) == "none"


def test_drivers_are_imported_beforehand() -> None:
    code = "import sys; from netkit.access.connect import load; load(['eos', 'linux']); "
    found = said(code + "print([name for name in sys.modules if name.endswith('.driver') or name == 'napalm.junos'])")
    assert found == "['netkit.platforms.driver', 'netkit.platforms.eos.driver', 'netkit.platforms.linux.driver']"

"""NAPALM is loaded as far as it is needed, and is whole for whoever asks for the rest."""

import subprocess
import sys

LIGHT = "from netkit.access.connect import prepare; prepare(); "


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_driver_comes_without_those_of_other_vendors() -> None:
    code = LIGHT + "import sys, netkit.platforms.nvue.driver as d; print('napalm.junos' in sys.modules, d.NvueDriver)"
    assert said(code) == "False <class 'netkit.platforms.nvue.driver.NvueDriver'>"


def test_who_asks_for_the_rest_has_all_of_it() -> None:
    code = LIGHT + (
        "import netkit.platforms.nvue.driver as d, napalm; "
        "print(napalm.get_network_driver('nvue') is d.NvueDriver, napalm.get_network_driver('junos').__name__, "
        "issubclass(d.NvueDriver, napalm.base.NetworkDriver), napalm.__version__ != '', type(napalm).__name__)"
    )
    assert said(code) == "True JunOSDriver True True module"


def test_a_package_that_is_there_already_stays() -> None:
    code = "import napalm; " + LIGHT + "import sys; print(sys.modules['napalm'] is napalm, type(napalm).__name__)"
    assert said(code) == "True module"


def test_what_it_does_not_have_is_missing_as_ever() -> None:
    code = LIGHT + "import napalm; print(hasattr(napalm, 'nothing_such'), hasattr(napalm, 'SUPPORTED_DRIVERS'))"
    assert said(code) == "False True"


def test_netmiko_comes_without_its_kinds_of_devices_and_has_them_when_asked() -> None:
    code = LIGHT + (
        "import sys, netkit.platforms.nvue.driver, netmiko; "
        "print('netmiko.cisco' in sys.modules, 'invoke.runners' in sys.modules, 'lxml.etree' in sys.modules); "
        "from netmiko import ConnectHandler, BaseConnection, NetmikoAuthenticationException\n"
        "try: ConnectHandler(device_type='nothing such')\n"
        "except ValueError as error: print('Unsupported' in str(error))\n"
        "import invoke, napalm.base.helpers as helpers; print(invoke.run.__name__, helpers.mac('0:0:0:0:0:1'))"
    )
    assert said(code).splitlines() == ["False False False", "True", "run 00:00:00:00:00:01"]


def test_several_threads_may_ask_for_drivers_at_once() -> None:
    code = LIGHT + (
        "import importlib, threading; names = ['nvue', 'sonic', 'eos', 'frr', 'linux'] * 4\n"
        "work = lambda name: importlib.import_module(f'netkit.platforms.{name}.driver')\n"
        "all_ = [threading.Thread(target=work, args=(name,)) for name in names]\n"
        "[one.start() for one in all_]; [one.join(100) for one in all_]; print(any(one.is_alive() for one in all_))"
    )
    assert said(code) == "False"

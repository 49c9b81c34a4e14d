"""Intent → Fabric. Every number comes from slots and ceilings; all problems of a phase are reported at once."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from netkit.design import (
    clusters,
    external,
    hosts,
    layout,
    lossless,
    network_problems,
    networks,
    overrides,
    pools,
    static_routes,
    switches,
    verify,
)
from netkit.design.blueprint import Blueprint
from netkit.design.fabric import (
    Bfd,
    Fabric,
    Login,
    PathRule,
    Port,
    PortProfile,
    Rail,
    RoutingPolicy,
    Services,
    Snmp,
    Switch,
    SyslogServer,
)
from netkit.design.hardware_lookup import look_up
from netkit.design.networks import NetworkPlan
from netkit.design.notes import notes
from netkit.design.numbering import Numbering
from netkit.design.select import select
from netkit.errors import DesignError, NetkitError, Path, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent.model import Intent, PathRuleIntent, StaticRouteIntent
from netkit.platforms.compare import MODELS


def build(intent: Intent, catalog: Catalog, *, has_notes: bool = True) -> Fabric:
    """Design the fabric, or raise DesignError with every problem; its notes take a quarter of the time."""
    numbers = list(lossless.problems(intent))
    problems = [*verify.ceilings(intent), *pools.problems(intent, Numbering(intent))]
    try:
        hardware = look_up(intent, catalog)
    except NetkitError as error:
        raise DesignError([*error.problems, *problems, *numbers]) from None
    layouts, found = layout.arrange(hardware)
    plans, wrong = networks.look_up(intent, catalog)
    problems += [*found, *(wrong or network_problems.of_plans(intent, plans, hardware.media))]
    if problems:
        raise DesignError([*problems, *numbers])
    blueprint = Blueprint(hardware, layouts)
    fabric = _assemble(blueprint, plans)
    panels = {
        switch.name: switches.edge_panel(blueprint, switch.role, switch.name, switch.ports)
        for switch in fabric.switches
        if switch.access is None
    }
    for plan in plans:
        for switch in (fabric.switch(name) for name in plan.names):
            panel = plan.edge_panel(intent, switch.name)
            used = frozenset(port.cage for port in switch.access.ports) if switch.access else frozenset()
            panels[switch.name] = replace(panel, kept=panel.kept | used)
    problems = [
        *numbers,
        *blueprint.unmatched(fabric.names),
        *verify.fabric(fabric.without_networks, hardware, blueprint.renamed),
        *overrides.problems(fabric.without_networks, intent),
        *network_problems.installed(fabric, intent),
        *external.problems(fabric, intent, panels),
        *clusters.problems(fabric, intent),
    ]
    if problems:
        raise DesignError(problems)
    static = intent.routing.static or ()
    problems = [*_unselected(fabric, ("leave",), intent.leave), *_unselected(fabric, ("own",), intent.own)]
    problems += _unselected(fabric, ("routing", "static"), static)
    problems += [] if problems else [*_cut_off(fabric, intent), *static_routes.problems(fabric, intent)]
    if problems:
        raise DesignError(problems)
    fabric = static_routes.with_static_routes(fabric, static) if static else fabric
    fabric = replace(fabric, leave=_rules(fabric, intent.leave), own=_rules(fabric, intent.own))
    fabric = replace(fabric, clusters=tuple(clusters.clusters(fabric, hosts.RoutePlan(fabric), intent)))
    return replace(fabric, notes=tuple(notes(fabric, intent, hardware.media))) if has_notes else fabric


def with_numbers(fabric: Fabric, intent: Intent, catalog: Catalog, names: Collection[str]) -> Fabric:
    """The fabric of an intent that differs only in numbers of `lossless` and `routing`.

    Notes, clusters and the ports of all switches but these stay.
    """
    hardware = look_up(intent, catalog)
    made: dict[int, PortProfile] = {}

    def numbered(switch: Switch, port: Port) -> Port:
        one = port.profile
        if id(one) not in made:
            thresholds, room = lossless.of_ports(intent, switch.model, one.split, one.cable, one.mtu_bytes)
            made[id(one)] = replace(one, ecn=thresholds, headroom=room)
        return replace(port, profile=made[id(one)])

    switches = tuple(
        replace(switch, ports=tuple(numbered(switch, port) for port in switch.ports))
        if switch.name in names
        else switch
        for switch in fabric.switches
    )
    changed = replace(fabric, lossless=lossless.profile(intent), routing=_routing(intent), switches=switches)
    if problems := [*lossless.problems(intent), *verify.fabric(changed.without_networks, hardware, {})]:
        raise DesignError(problems)
    return changed


def _rules(fabric: Fabric, rules: Iterable[PathRuleIntent]) -> tuple[PathRule, ...]:
    return tuple(PathRule(rule.path, _selected(fabric, rule.devices) if rule.devices else None) for rule in rules)


def _unselected(fabric: Fabric, key: Path, rules: Iterable[PathRuleIntent | StaticRouteIntent]) -> Iterator[Problem]:
    for index, rule in enumerate(rules):
        try:
            _selected(fabric, rule.devices)
        except UsageError as error:
            problem = error.problems[0]
            yield Problem(problem.message.removeprefix("--limit "), problem.remedy, (*key, index, "devices"))


def _selected(fabric: Fabric, expression: str) -> frozenset[str]:
    return frozenset(device.name for device in select(fabric, expression))


def _cut_off(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Refuse to own paths that netkit only claims, since removing them may cut off access."""
    for index, rule in enumerate(intent.own):
        names = _selected(fabric, rule.devices)
        for platform in sorted({device.platform for device in select(fabric, "") if device.name in names}):
            if claim := MODELS[platform].ownership.claim_within(rule.path):
                message = f"{platform} devices may be reached by {claim}: what is not rendered there would be removed"
                remedy = "name another path; what the intent or a template sets there is deployed anyway"
                yield Problem(message, remedy, ("own", index))


def _assemble(blueprint: Blueprint, plans: Iterable[NetworkPlan]) -> Fabric:
    intent, numbering = blueprint.intent, blueprint.numbering
    attached = networks.attachments(blueprint, plans)
    return Fabric(
        name=intent.name,
        site=intent.site,
        purpose=intent.purpose,
        topology=intent.topology,
        attachment=intent.attachment,
        host_routes=intent.host_routes,
        cross_rail=intent.cross_rail,
        rails=tuple(
            Rail(rail, numbering.rail_prefix(rail), numbering.rail_prefix_v6(rail)) for rail in range(intent.rails)
        ),
        loopback_pool=str(intent.pools.loopbacks),
        host_pool=str(intent.pools.hosts),
        lossless=lossless.profile(intent),
        routing=_routing(intent),
        services=_services(intent),
        switches=(
            *switches.switches(blueprint),
            *(switch for plan in plans for switch in networks.switches(blueprint, plan)),
        ),
        hosts=tuple(replace(host, attachments=attached.get(host.name, ())) for host in hosts.hosts(blueprint)),
        nic_firmware=intent.firmware.nics,
        module_firmware=intent.firmware.modules,
        loopback_pool_v6=str(intent.pools.loopbacks_v6 or ""),
        host_pool_v6=str(intent.pools.hosts_v6 or ""),
        link_pool=str(intent.pools.links or ""),
    )


def _routing(intent: Intent) -> RoutingPolicy:
    routing = intent.routing
    return RoutingPolicy(
        leaf_exports_all=routing.leaf_export == "all",
        allowas_in=routing.allowas_in,
        keepalive_s=routing.keepalive_s,
        hold_s=routing.hold_s,
        connect_s=routing.connect_s,
        max_paths=routing.max_paths,
        bfd=Bfd(routing.bfd.interval_ms, routing.bfd.multiplier),
        owns_static=routing.static is not None,
    )


def _services(intent: Intent) -> Services:
    services = intent.services
    snmp, login = services.snmp, services.login
    return Services(
        ntp=tuple(map(str, services.ntp)),
        dns=tuple(map(str, services.dns)),
        syslog=tuple(SyslogServer(str(server.address), server.port, server.protocol) for server in services.syslog),
        snmp=(Snmp(snmp.user, snmp.auth_secret or "", snmp.priv_secret or "", snmp.location, snmp.contact),)
        if snmp
        else (),
        login=(Login(login.user, login.password_hash_secret or ""),) if login else (),
        timezone=services.timezone,
    )

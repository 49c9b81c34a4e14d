// All about one device, or one port of it, in a dialog; its address is the fragment, so that it can be shared.
const GROUPS = [
  ["Link", ["kind", "peer", "peer_port", "neighbor_seen", "neighbor", "neighbor_port", "speed_gbps", "running_gbps", "up", "enabled", "mtu_bytes", "fec", "link_up_s"]],
  ["Load", ["load", "pause", "ecn", "queue", "queue_peak_bytes", "headroom", "headroom_peak_bytes"]],
  ["Optics", ["module", "vendor", "part", "serial", "firmware", "margin", "rx_dbm", "tx_dbm", "bias_ma", "temperature_c", "voltage_v", "ber", "effective_ber"]],
  ["BGP", ["bgp", "peer_asn", "prefixes", "bfd_up", "draining", "session_drops"]],
  ["QoS", ["trust", "pfc_rx", "pfc_tx", "strict", "ets", "ecn_thresholds", "cnp_dscp", "cable_m", "watchdog", "adaptive_routing"]],
  ["NIC", ["nic_pci", "nic_rdma", "nic_part", "nic_firmware", "nic_link"]],
];
const LABELS = {
  load: "utilisation (%)", pause: "pauses a second", ecn: "ECN marks a second", margin: "optic margin (dB)",
  queue: "longest queue in the window (% of where all is marked)", queue_peak_bytes: "longest queue in the window (bytes)",
  headroom: "headroom used in the window, most (%)", headroom_peak_bytes: "headroom used in the window (bytes)", speed_gbps: "designed speed (Gb/s)",
  running_gbps: "running speed (Gb/s)", neighbor_seen: "LLDP neighbour seen", neighbor: "LLDP neighbour name", neighbor_port: "LLDP neighbour port", peer: "cabled to", peer_port: "its port",
  mtu_bytes: "MTU (bytes)", fec: "FEC", ber: "bit errors before FEC", effective_ber: "bit errors after FEC", bgp: "session", bfd_up: "BFD up",
  pfc_rx: "PFC heeded on", pfc_tx: "PFC sent on", ets: "ETS weights", ecn_thresholds: "ECN by class", cnp_dscp: "DSCP of CNPs", link_up_s: "time to come up (s)",
  rx_dbm: "received power by lane (dBm)", tx_dbm: "transmitted power, weakest lane (dBm)", bias_ma: "laser current, most (mA)", temperature_c: "temperature (°C)", voltage_v: "voltage (V)",
  cable_m: "cable length (m)", uptime_s: "uptime (s)", nic_pci: "PCI", nic_rdma: "RDMA", nic_part: "part", nic_firmware: "firmware", nic_link: "PCIe link",
};
const KNOWN = new Set([...GROUPS.flatMap(([, names]) => names), "port", "state", "causes"]);

/** What a column is of, without the priority. */
function stem(name) { return name.split("/")[0]; }

function labelled(name) {
  const label = LABELS[stem(name)];
  return label === undefined ? name.replaceAll("_", " ") : name.includes("/") ? `${label}, priority ${name.split("/")[1]}` : label;
}

class Detail {
  constructor(dialog) {
    this.dialog = dialog;
    dialog.addEventListener("close", () => {
      if (location.hash.startsWith("#device/")) history.replaceState(null, "", location.pathname + location.search);
      if (this.origin && this.origin.isConnected) this.origin.focus();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    window.addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  follow() {
    const parts = location.hash.split("/");
    if (parts[0] !== "#device") { this.dialog.close(); return; }
    const [name, port] = parts.slice(1).map(decoded);
    const device = byName.get(name);
    if (!device) return;
    if (!this.dialog.open) this.origin = document.activeElement;
    const row = port ? rowOf(device, port) : -1;
    this.dialog.replaceChildren(this.head(device, row < 0 ? "" : port), row < 0 ? aboutDevice(device) : aboutPort(device, row));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    this.dialog.querySelector("h2").focus();
  }

  head(device, port) {
    const title = el("h2", { id: "detail-title", tabindex: "-1" }, port ? [link(device.name), `:${port}`] : device.name);
    const close = el("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Close");
    return el("header", {}, title, close);
  }
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return ""; }
}

function aboutDevice(device) {
  const position = ["role", "pod", "unit", "rail", "plane", "platform", "model"].filter((name) => device[name] !== undefined).map((name) => [name, shown(device[name])]);
  const facts = Object.entries(device.facts).map(([name, value]) => [labelled(name), shown(value)]);
  const absent = Object.entries(device.absent);
  return el("div", {},
    el("p", {}, badge(device.state), ` ${counted(device.examined, "thing")} examined on this device alone`, device.failure ? `; ${device.failure}` : ""),
    related(device),
    el("h3", {}, "Place in the design"), list(position),
    facts.length ? [el("h3", {}, "Facts it reports"), list(facts)] : null,
    absent.length ? [el("h3", {}, "What it did not report"), list(absent)] : null,
    el("h3", {}, "Ports"), portsOf(device));
}

function portsOf(device) {
  const reported = ["up", "pause", "ecn", "load", "margin", "temperature_c"].filter((name) => device.ports.columns[name] !== undefined);
  const units = { ...Object.fromEntries(data.metrics.map((metric) => [metric.name, metric.unit])), temperature_c: "°C" };
  const titles = { ...Object.fromEntries(data.metrics.map((metric) => [metric.name, metric.title])), up: "Up", temperature_c: "Heat" };
  const rows = Array.from({ length: device.ports.rows }, (_, row) => {
    const value = (name) => cell(device.ports, name, row);
    return [link(device.name, value("port"), value("port")), value("state") ? badge(value("state")) : "–", value("kind"),
      link(value("peer") || "", value("peer_port") || ""), ...reported.map((name) => shown(value(name), units[name] || ""))];
  });
  return grid(`Ports of ${device.name}`, ["Port", "Findings", "Kind", "Far end", ...reported.map((name) => titles[name])], rows);
}

function aboutPort(device, row) {
  const { ports } = device;
  const port = cell(ports, "port", row);
  const state = cell(ports, "state", row);
  const value = (name) => cell(ports, name, row);
  const known = Object.keys(ports.columns).filter((name) => value(name) !== null);
  const groups = GROUPS.map(([title, names]) => [title, names.flatMap((one) => known.filter((name) => stem(name) === one))]).filter(([, names]) => names.length);
  const counters = known.filter((name) => !KNOWN.has(stem(name)));
  return el("div", {},
    el("p", {}, state ? badge(state) : "no finding names this port alone", ` cabled to `, link(value("peer") || "", value("peer_port") || "")),
    differs(value("peer"), value("neighbor")),
    related(device, row),
    groups.map(([title, names]) => [el("h3", {}, title), list(names.map((name) => [labelled(name), shown(value(name))]))]),
    device.window_s ? el("h3", {}, `Counters over ${shown(device.window_s, "s")}`) : null,
    device.window_s ? counters.length ? list(counters.map((name) => [labelled(name), shown(value(name))])) : el("p", {}, "No counter of note moved.") : null,
    data.trends.series.filter((one) => one.device === device.name && portOf(device, one.place) === port).map(chart));
}

/** The neighbour is shown only if it differs from the design. */
function differs(peer, neighbor) {
  if (!peer || !neighbor) return null;
  return el("p", { class: "note" }, `By design this is cabled to ${peer}; LLDP reports ${neighbor}.`);
}

/** The causes that have a finding on a device, or at a port of it: including those that the cause does not list. */
function related(device, row = -1) {
  const found = causesOf(device, row).map((number) => data.causes[number]);
  const state = row < 0 ? device.state : cell(device.ports, "state", row);
  if (!found.length) return BAD.includes(state) ? el("p", { class: "note" }, "What is wrong here is not among the causes of this report: netkit check --format json has all.") : null;
  return el("div", {}, el("h3", {}, "Findings"), el("ol", { class: "causes" }, found.slice(0, AT_ONCE).map((cause) => el("li", {}, unfolding(cause)))));
}

// The fabric as a picture: tiers from the top, a row of leaves for each unit, a column for each rail.
const WIDE = 1120;
const LEFT = 84;
const HOSTS = 190;
const GAP = 5;

function picture(section) {
  const tiers = tiersOf(data.devices);
  const places = placed(tiers);
  const nodes = places.boxes.map(node);
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${WIDE} ${places.height}`, role: "group", "aria-label": `The fabric: ${summary()}`, class: "picture" },
    svg("g", { class: "wires", "aria-hidden": "true" }, wires(places)),
    svg("g", { class: "labels", "aria-hidden": "true" }, places.labels.map(([x, y, text, anchor]) => (
      svg("text", { x, y, "text-anchor": anchor }, text)))),
    svg("g", {}, nodes),
  );
  roving(drawing, nodes);
  section.append(el("p", { class: "muted" }, `${summary()}. Arrow keys move, Enter opens a device.`), el("div", { class: "scroll card" }, drawing), legend(places));
}

function summary() {
  const counts = {};
  data.devices.forEach((device) => { counts[device.role] = (counts[device.role] || 0) + 1; });
  const names = { core: "core", spine: "spine", leaf: "leaf", host: "host" };
  const plural = { core: "cores", spine: "spines", leaf: "leaves", host: "hosts" };
  return ["core", "spine", "leaf", "host"].filter((role) => counts[role])
    .map((role) => `${counts[role]} ${counts[role] === 1 ? names[role] : plural[role]}`).join(", ");
}

function legend(places) {
  const left = places.leftOut ? el("span", { class: "muted" }, `Not drawn: ${counted(places.leftOut, "more link")} with findings`) : null;
  const used = new Set(data.devices.map((device) => device.state));
  return el("p", { class: "legend" }, RANKS.filter((state) => used.has(state)).reverse().map(badge), left);
}

function tiersOf(devices) {
  const of = (role) => devices.filter((device) => device.role === role);
  const rows = new Map();
  for (const device of [...of("leaf"), ...of("host")]) {
    const key = `${device.pod}/${device.unit}`;
    if (!rows.has(key)) rows.set(key, { pod: device.pod, unit: device.unit, leaves: [], hosts: [] });
    rows.get(key)[device.role === "leaf" ? "leaves" : "hosts"].push(device);
  }
  const sorted = [...rows.values()].sort((one, other) => one.pod - other.pod || one.unit - other.unit);
  return { core: of("core"), spine: of("spine"), rows: sorted };
}

function placed(tiers) {
  const boxes = [];
  const labels = [];
  let y = 8;
  for (const role of ["core", "spine"]) y = placeTier(role, tiers[role], y, boxes, labels);
  y = placeRows(tiers.rows, y, boxes, labels);
  return { boxes, labels, height: y + 4, at: new Map(boxes.map((box) => [box.device.name, box])), tiers };
}

function placeTier(role, devices, top, boxes, labels) {
  if (!devices.length) return top;
  const columns = Math.min(devices.length, 16);
  const width = Math.min(120, (WIDE - LEFT - 8) / columns - GAP);
  labels.push([0, top + 17, `${role}s`, "start"]);
  devices.forEach((device, index) => {
    const row = Math.floor(index / columns);
    const inRow = Math.min(columns, devices.length - row * columns);
    const start = LEFT + (WIDE - LEFT - inRow * (width + GAP)) / 2;
    boxes.push({ device, x: start + (index % columns) * (width + GAP), y: top + row * 31, width, height: 26 });
  });
  const room = devices.length * data.devices.length > 40 ? 44 : 34;
  return top + Math.ceil(devices.length / columns) * 31 + room;
}

function placeRows(rows, top, boxes, labels) {
  const rails = [...new Set(rows.flatMap((row) => row.leaves.map((leaf) => leaf.rail)))].sort((one, other) => one - other);
  const hasHosts = rows.some((row) => row.hosts.length);
  const width = (WIDE - LEFT - (hasHosts ? HOSTS + 16 : 0)) / Math.max(1, rails.length);
  let y = top;
  rails.forEach((rail, index) => labels.push([LEFT + (index + 0.5) * width, y, `rail ${rail}`, "middle"]));
  if (hasHosts) labels.push([WIDE - HOSTS, y, "hosts", "start"]);
  y += 8;
  const hasPods = new Set(rows.map((row) => row.pod)).size > 1;
  for (const row of rows) {
    labels.push([0, y + 17, `${hasPods ? `pod ${row.pod} ` : ""}unit ${row.unit}`, "start"]);
    placeLeaves(row.leaves, rails, width, y, boxes);
    y += Math.max(31, placeHosts(row.hosts, y, boxes) + 5);
  }
  return y;
}

function placeLeaves(leaves, rails, width, y, boxes) {
  rails.forEach((rail, index) => {
    const here = leaves.filter((leaf) => leaf.rail === rail);
    const each = (width - GAP) / Math.max(1, here.length);
    here.forEach((device, slot) => boxes.push({
      device, x: LEFT + index * width + slot * each, y, width: each - (here.length > 1 ? 2 : 0), height: 26,
    }));
  });
}

/** Hosts are small squares: those with problems stand out. Returns their height. */
function placeHosts(hosts, y, boxes) {
  const side = hosts.length <= 7 ? 24 : hosts.length <= 24 ? 13 : 9;
  const columns = Math.floor(HOSTS / (side + 2));
  hosts.forEach((device, index) => boxes.push({
    device, x: WIDE - HOSTS + (index % columns) * (side + 2), y: y + 2 + Math.floor(index / columns) * (side + 2), width: side, height: side, isSmall: true,
  }));
  return Math.ceil(hosts.length / columns) * (side + 2);
}

function node(box) {
  const { device, x, y, width, height } = box;
  const title = `${device.name}, ${device.role}, ${WORDS[device.state]}`;
  const shape = svg("rect", { x, y, width, height, rx: box.isSmall ? 2 : 4 });
  const parts = [svg("title", {}, title), shape];
  if (!box.isSmall) parts.push(sign(device.state, x + 8.5, y + height / 2), caption(device.name, x, y, width, height));
  else if (device.state !== "pass") parts.push(svg("path", { class: "cross", d: `M${x + 2} ${y + height - 2}L${x + width - 2} ${y + 2}` }));
  return svg("a", { href: address(device.name), "aria-label": title, class: `node is-${device.state}` }, parts);
}

function caption(name, x, y, width, height) {
  const most = Math.floor((width - 16) / 6);
  const text = name.length <= most ? name : most > 3 ? `…${name.slice(1 - most)}` : "";
  return svg("text", { x: x + 16, y: y + height / 2 + 4 }, text);
}

const SIGNS = {
  pass: "M-4 0L-1 3L4 -3", warn: "M0 -4.5V1M0 3.5V4.5", fail: "M-3.5 -3.5L3.5 3.5M3.5 -3.5L-3.5 3.5",
  error: "M-3 -4H3M-3 0H2M-3 4H3M-3 -4V4", unreached: "M-2.5 -2C-2.5 -5 2.5 -5 2.5 -2C2.5 0 0 0 0 2M0 4V4.6", unknown: "M-3.5 0H3.5",
};

function sign(state, x, y) {
  return svg("path", { class: "sign", d: SIGNS[state], transform: `translate(${x} ${y})` });
}

const MOST_WIRES = 400;
const MOST_BAD = 120;

/** One line for all cables between two switches; of a large fabric only those on which something is wrong. */
function wires(places) {
  const found = new Map();
  for (const { device } of places.boxes) {
    if (device.role === "host") continue;
    for (let row = 0; row < device.ports.rows; row += 1) wire(found, places, device, row);
  }
  const all = [...found.values()];
  const bad = all.filter((one) => one.state).sort((one, other) => rank(one.state) - rank(other.state));
  const well = all.length > MOST_WIRES || places.tiers.rows.length > 2 ? [] : all.filter((one) => !one.state);
  places.leftOut = Math.max(0, bad.length - MOST_BAD);
  return [...well, ...drawn(bad)].map(line);
}

/** The worst last, so that they lie on top; of those equally bad some from everywhere, so that no device looks like the cause. */
function drawn(bad) {
  if (bad.length <= MOST_BAD) return bad;
  const least = rank(bad.at(-MOST_BAD).state);
  const [alike, worse] = [bad.filter((one) => rank(one.state) === least), bad.filter((one) => rank(one.state) > least)];
  const room = MOST_BAD - worse.length;
  return [...Array.from({ length: room }, (_, index) => alike[Math.floor((index * alike.length) / room)]), ...worse];
}

function rank(state) { return state ? RANKS.indexOf(state) : -1; }

function wire(found, places, device, row) {
  const peer = places.at.get(cell(device.ports, "peer", row));
  if (!peer || peer.isSmall) return;
  const key = [device.name, peer.device.name].sort().join(" ");
  const state = cell(device.ports, "state", row);
  const one = found.get(key) || { ends: [places.at.get(device.name), peer], state: null };
  one.state = state && one.state ? worse(state, one.state) : state || one.state;
  found.set(key, one);
}

function line({ ends, state }) {
  const [upper, lower] = ends[0].y < ends[1].y ? ends : [ends[1], ends[0]];
  const [x1, y1] = [upper.x + upper.width / 2, upper.y + upper.height];
  const [x2, y2] = [lower.x + lower.width / 2, lower.y];
  const bend = Math.min(40, (y2 - y1) / 2);
  return svg("path", { class: state ? `bad is-${state}` : null, d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` });
}

// Devices × ports as a heatmap on a canvas: thousands of cells at once, one of them under the cursor.
const EDGE = 60;
const NAMES = { leaf: "Leaves", spine: "Spines", core: "Cores", host: "Hosts" };

class Heat {
  constructor(section) {
    this.canvas = el("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "heatmap", "aria-label": "Ports by device", "aria-describedby": "heat-now",
    });
    this.now = el("p", { id: "heat-now", class: "now", "aria-live": "polite" });
    this.scale = el("div", { class: "scale" });
    this.worst = el("div", { class: "worst" });
    this.frame = el("div", { class: "heat" }, this.canvas);
    this.metric = this.metrics().find((metric) => this.isTold(metric)) || data.metrics[0];
    this.role = ["leaf", "spine", "core", "host"].find((role) => data.devices.some((device) => device.role === role));
    this.isSorted = false;
    this.at = { row: 0, column: 0 };
    section.append(this.controls(), this.scale, this.now, this.frame, this.worst);
    this.listen();
    this.choose();
  }

  metrics() { return data.metrics; }

  isTold(metric) { return data.devices.some((device) => device.ports.columns[metric.name] !== undefined); }

  controls() {
    const choice = (name, value, text, isOn, change) => el("label", { class: "choice" }, el("input", {
      type: "radio", name, value, checked: isOn, onchange: () => { change(); this.choose(); },
    }), text);
    const roles = Object.keys(NAMES).filter((role) => data.devices.some((device) => device.role === role));
    return el(
      "div", { class: "controls" },
      el("fieldset", {}, el("legend", {}, "Show"), data.metrics.map((metric) => (
        choice("metric", metric.name, metric.title, metric === this.metric, () => { this.metric = metric; })))),
      el("fieldset", {}, el("legend", {}, "Of"), roles.map((role) => (
        choice("role", role, NAMES[role], role === this.role, () => { this.role = role; this.at = { row: 0, column: 0 }; })))),
      el("label", { class: "choice" }, el("input", {
        type: "checkbox", id: "heat-sorted", onchange: (event) => { this.isSorted = event.target.checked; this.choose(); },
      }), "Worst rows first"),
    );
  }

  /** Take the rows, columns and values of what is chosen, and draw them. */
  choose() {
    const chosen = data.devices.filter((device) => device.role === this.role);
    const names = new Set(chosen.flatMap((device) => Array.from({ length: device.ports.rows }, (_, row) => cell(device.ports, "port", row))));
    this.ports = [...names].sort(NATURAL.compare);
    const columns = new Map(this.ports.map((port, index) => [port, index]));
    this.rows = chosen.map((device) => this.row(device, columns));
    if (this.isSorted) this.rows.sort((one, other) => other.weight - one.weight);
    this.draw();
    this.tellScale();
    this.tellWorst();
    this.describe();
  }

  row(device, columns) {
    const cells = new Array(columns.size).fill(undefined);
    let weight = -Infinity;
    for (let row = 0; row < device.ports.rows; row += 1) {
      const value = cell(device.ports, this.metric.name, row);
      cells[columns.get(cell(device.ports, "port", row))] = { row, value, state: cell(device.ports, "state", row) };
      if (value !== null) weight = Math.max(weight, this.badness(value));
    }
    return { device, cells, weight };
  }

  /** From 0, nothing to see, to 1, as bad as it gets. */
  badness(value) {
    const { scale, most } = this.metric;
    const part = scale === "log" ? Math.log10(1 + Math.max(0, value)) / Math.log10(1 + most) : Math.max(0, value) / most;
    const bounded = Math.min(1, part);
    return scale === "margin" ? 1 - bounded : bounded;
  }

  measures() {
    const columns = Math.max(1, this.ports.length);
    const left = 92;
    const wide = Math.max(300, this.frame.clientWidth || WIDE);
    const width = Math.max(8, Math.min(26, Math.floor((wide - left) / columns)));
    const height = this.rows.length > 64 ? 9 : this.rows.length > 24 ? 13 : 18;
    return { left, top: 20, width, height, wide: left + width * columns + 2, high: 20 + height * this.rows.length + 2 };
  }

  draw() {
    const size = this.measures();
    this.size = size;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(size.wide * ratio), height: Math.round(size.high * ratio) });
    this.canvas.style.width = `${size.wide}px`;
    this.canvas.style.height = `${size.high}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const color = (name) => resolved(this.canvas, name);
    this.colors = Object.fromEntries(["muted", "none", "cursor", "flag", "paper"].map((name) => [name, color(name)]));
    this.ramp = rampOf(color("low"), color("mid"), color("high"));
    pen.clearRect(0, 0, size.wide, size.high);
    this.drawLabels(pen, size);
    this.rows.forEach((row, index) => row.cells.forEach((one, column) => this.drawCell(pen, size, one, index, column)));
    this.drawCursor(pen, size);
  }

  drawLabels(pen, size) {
    pen.fillStyle = this.colors.muted;
    pen.font = `${Math.min(11, size.height)}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const most = 15;
    this.rows.forEach(({ device }, index) => {
      const name = device.name.length > most ? `${device.name.slice(0, most - 1)}…` : device.name;
      pen.fillText(name, 0, size.top + (index + 0.5) * size.height, size.left - 8);
    });
    const every = Math.ceil(52 / size.width);
    this.ports.forEach((port, column) => {
      if (column % every === 0) pen.fillText(port.length > 9 ? `${port.slice(0, 8)}…` : port, size.left + column * size.width, 9, every * size.width - 4);
    });
  }

  drawCell(pen, size, one, index, column) {
    if (one === undefined) return;
    const [x, y] = [size.left + column * size.width, size.top + index * size.height];
    pen.fillStyle = one.value === null ? this.colors.none : this.ramp[Math.round(this.badness(one.value) * 255)];
    pen.fillRect(x, y, size.width - 1, size.height - 1);
    if (one.value === null) this.drawUnknown(pen, size, x, y);
    if (one.state) this.drawFlag(pen, x, y, Math.min(6, Math.ceil(Math.min(size.width, size.height) / 2)));
  }

  /** A slash distinguishes an unknown value from zero. */
  drawUnknown(pen, size, x, y) {
    pen.strokeStyle = this.colors.muted;
    pen.lineWidth = 0.5;
    pen.beginPath();
    pen.moveTo(x, y + size.height - 1);
    pen.lineTo(x + size.width - 1, y);
    pen.stroke();
  }

  /** A corner marks ports with findings, whatever the metric; it has an edge, since a cell may be red. */
  drawFlag(pen, x, y, size) {
    for (const [color, side] of [[this.colors.paper, size + 2], [this.colors.flag, size]]) {
      pen.fillStyle = color;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + side, y);
      pen.lineTo(x, y + side);
      pen.fill();
    }
  }

  drawCursor(pen, size) {
    if (document.activeElement !== this.canvas) return;
    pen.strokeStyle = this.colors.cursor;
    pen.lineWidth = 2;
    pen.strokeRect(size.left + this.at.column * size.width - 1, size.top + this.at.row * size.height - 1, size.width + 1, size.height + 1);
  }

  listen() {
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => { this.draw(); this.describe(); });
    this.canvas.addEventListener("blur", () => this.draw());
    this.canvas.addEventListener("mousemove", (event) => this.describe(this.under(event)));
    this.canvas.addEventListener("mouseleave", () => this.describe());
    this.canvas.addEventListener("click", (event) => { const at = this.under(event); if (at) { this.at = at; this.open(); } });
    let isWaiting = false;
    window.addEventListener("resize", () => {
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(() => { isWaiting = false; this.draw(); });
    });
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -1e9], End: [0, 1e9] };
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.open(); return; }
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    this.at = { row: within(this.at.row + step[0], this.rows.length), column: within(this.at.column + step[1], this.ports.length) };
    this.draw();
    this.follow();
    this.describe();
  }

  /** Scroll to the cursor: a large heatmap is higher than its frame, and the frame may be out of the window. */
  follow() {
    const { left, top, width, height } = this.size;
    const [x, y] = [left + this.at.column * width, top + this.at.row * height];
    const { frame } = this;
    frame.scrollTop = scrolled(frame.scrollTop, y, height, frame.clientHeight);
    frame.scrollLeft = scrolled(frame.scrollLeft, x, width, frame.clientWidth);
    const above = this.canvas.getBoundingClientRect().top + y;
    window.scrollBy(0, scrolled(0, above, height, window.innerHeight));
  }

  under(event) {
    const column = Math.floor((event.offsetX - this.size.left) / this.size.width);
    const row = Math.floor((event.offsetY - this.size.top) / this.size.height);
    return this.rows[row] && column >= 0 && column < this.ports.length ? { row, column } : null;
  }

  open() {
    const row = this.rows[this.at.row];
    const one = row && row.cells[this.at.column];
    if (one) location.hash = address(row.device.name, this.ports[this.at.column]);
  }

  /** Say what is under the mouse, or else under the cursor. */
  describe(at = null) {
    const { row, column } = at || this.at;
    const found = this.rows[row];
    const one = found && found.cells[column];
    const port = this.ports[column];
    this.now.textContent = !found ? "" : !one ? `${found.device.name} has no port ${port}` : this.sentence(found.device, port, one);
  }

  sentence(device, port, one) {
    const peer = [cell(device.ports, "peer", one.row), cell(device.ports, "peer_port", one.row)].filter(Boolean).join(":");
    const value = one.value === null ? "not reported" : shown(one.value, this.metric.unit);
    const state = one.state ? `, ${WORDS[one.state]}` : "";
    return `${device.name}:${port}${peer ? ` to ${peer}` : ""}: ${this.metric.title.toLowerCase()} ${value}${state}`;
  }

  tellScale() {
    const { scale, most, unit, text } = this.metric;
    const isMargin = scale === "margin";
    const ends = isMargin ? [`${most} ${unit} or more`, `0 ${unit}`] : ["0", `${shown(most, unit)} or more`];
    const found = this.rows.flatMap((row) => row.cells).filter((one) => one !== undefined);
    const known = found.filter((one) => one.value !== null).length;
    const parts = [
      el("span", {}, ends[0]), el("span", { class: "ramp", "aria-hidden": "true" }), el("span", {}, ends[1]),
      el("span", { class: "swatch none", "aria-hidden": "true" }), el("span", {}, "not reported"),
      el("span", { class: "swatch flag", "aria-hidden": "true" }), el("span", {}, "has findings"),
    ];
    this.scale.replaceChildren(el("p", {}, `${this.metric.title}: ${text}${scale === "log" ? "; logarithmic" : ""}. ${WHOLE.format(known)} of ${counted(found.length, "port")} report it.`), el("p", { class: "scale-bar" }, parts));
  }

  /** The worst cells as a table: quicker to read for some, and the only way for those who do not see colours. */
  tellWorst() {
    const reported = this.rows.flatMap(({ device, cells }) => cells
      .map((one, column) => ({ device, port: this.ports[column], one })).filter(({ one }) => one && one.value !== null));
    const found = reported.filter(({ one }) => this.metric.scale === "margin" || one.value > 0);
    found.sort((one, other) => (this.metric.scale === "margin" ? one.one.value - other.one.value : other.one.value - one.one.value));
    if (!found.length) { this.worst.replaceChildren(el("p", { class: "muted" }, reported.length ? "No port reports a value above zero." : "No port reports it, so nothing is known.")); return; }
    const rows = found.slice(0, 10).map(({ device, port, one }) => [
      link(device.name, port), shown(one.value, this.metric.unit),
      link(cell(device.ports, "peer", one.row) || "", cell(device.ports, "peer_port", one.row) || ""),
      one.state ? badge(one.state) : "–",
    ]);
    const what = this.metric.scale === "margin" ? "The least" : "The most";
    this.worst.replaceChildren(grid(`${what}: ${this.metric.title.toLowerCase()}`, ["Port", this.metric.title, "Far end", "Findings"], rows));
  }
}

/** Where to scroll so that what is at a place, so long, is in a room with some space around it; no further than needed. */
function scrolled(from, at, length, room) {
  return Math.min(Math.max(from, at + length + EDGE - room), at - EDGE);
}

/** A colour of the style sheet as the theme makes it: a canvas knows no variables. */
function resolved(canvas, name) {
  canvas.style.color = `var(--heat-${name})`;
  return getComputedStyle(canvas).color;
}

function rampOf(low, mid, high) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 256, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const gradient = pen.createLinearGradient(0, 0, 256, 0);
  gradient.addColorStop(0, low);
  gradient.addColorStop(0.5, mid);
  gradient.addColorStop(1, high);
  pen.fillStyle = gradient;
  pen.fillRect(0, 0, 256, 1);
  const { data: bytes } = pen.getImageData(0, 0, 256, 1);
  return Array.from({ length: 256 }, (_, index) => `rgb(${bytes.slice(index * 4, index * 4 + 3).join(" ")})`);
}

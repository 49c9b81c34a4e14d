// The data of the report, and how to read its tables.
const data = JSON.parse(document.getElementById("data").textContent);
const byName = new Map(data.devices.map((device) => [device.name, device]));
const BAD = ["error", "fail", "warn"];
const WORDS = {
  pass: "well", unknown: "not judged", skipped: "not judged", unreached: "not reached", warn: "warn", fail: "fail",
  error: "broken check",
};
const RANKS = ["pass", "unknown", "unreached", "warn", "fail", "error"];

/** The value of a column in a row; null where it is not known. */
function cell(table, name, row) {
  const column = table.columns[name];
  if (column === undefined) return null;
  if (column.runs) unrolled(column);
  if (column.each) return column.each[row];
  return column.but && Object.hasOwn(column.but, row) ? column.but[row] : column.all;
}

/** Write a column out whose values come many times in a row. */
function unrolled(column) {
  column.each = column.runs.flatMap(([value, times]) => new Array(times).fill(value));
  delete column.runs;
}

function rowOf(device, port) {
  for (let row = 0; row < device.ports.rows; row += 1) if (cell(device.ports, "port", row) === port) return row;
  return -1;
}

/** The port that a place is, or is on: `swp1s0` and `swp1s0/3` are both on swp1s0. */
function portOf(device, place) {
  const before = place.slice(0, Math.max(0, place.lastIndexOf("/")));
  return [place, before].find((name) => name && rowOf(device, name) >= 0) || "";
}

/** The numbers of the causes that have a finding on a device, or at a port of it. */
function causesOf(device, row = -1) {
  if (row < 0) return device.causes || data.causes.flatMap((cause, number) => (cause.devices.includes(device.name) ? [number] : []));
  return (cell(device.ports, "causes", row) || "").split(" ").filter(Boolean).map(Number);
}

function worse(one, other) {
  return RANKS.indexOf(one) >= RANKS.indexOf(other) ? one : other;
}

const NATURAL = new Intl.Collator("en", { numeric: true });
const NUMBERS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const WHOLE = new Intl.NumberFormat("en");

/** A value as people read it. */
function shown(value, unit = "") {
  if (value === null || value === undefined) return "not reported";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (unit === "%" && value > 0 && value < 0.01) return "<0.01%";
  const text = Number.isInteger(value)
    ? WHOLE.format(value)
    : value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(1) : NUMBERS.format(value);
  if (!unit) return text;
  return unit.startsWith("/") || unit === "%" ? text + unit : `${text} ${unit}`;
}

function when(seconds) {
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function counted(number, noun) {
  return `${WHOLE.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

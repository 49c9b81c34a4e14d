// Elements, made without any HTML: whatever a device calls itself stays text.
const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function el(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

/** A mark that shows a state by shape and word too, not by colour alone. */
function badge(state) {
  return el("span", { class: `badge is-${state}` }, el("span", { class: `mark is-${state}`, "aria-hidden": "true" }), WORDS[state]);
}

function address(device, port = "") {
  return `#device/${encodeURIComponent(device)}${port ? `/${encodeURIComponent(port)}` : ""}`;
}

/** A link to a device or a port of it; plain text where the fabric has none of that name. */
function link(device, place = "", text = "") {
  const found = byName.get(device);
  const label = text || [device, place].filter(Boolean).join(":") || "fabric";
  if (!found) return el("span", {}, label);
  return el("a", { href: address(device, place ? portOf(found, place) : "") }, label);
}

function list(pairs) {
  return el("dl", { class: "pairs" }, pairs.map(([name, value]) => el("div", { class: String(value).length > 60 ? "wide" : null }, el("dt", {}, name), el("dd", {}, value))));
}

/** A table with a caption; a row is an array of texts and elements, its first one is its heading. */
function grid(caption, heads, rows) {
  const head = el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((row) => el("tr", {}, row.map((value, index) => (
    index ? el("td", { class: typeof value === "string" && /^[\d.,-]/.test(value) ? "number" : null }, value)
      : el("th", { scope: "row" }, value)))));
  const name = el("caption", {}, caption);
  const table = el("table", {}, name, el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

/** Let the arrow keys move among many elements, of which only one is a stop of the Tab key. */
function roving(container, items) {
  items.forEach((item, index) => item.setAttribute("tabindex", index ? "-1" : "0"));
  container.addEventListener("keydown", (event) => {
    const from = items.indexOf(document.activeElement);
    const to = from < 0 ? -1 : next(items, from, event.key);
    if (to < 0) return;
    event.preventDefault();
    items[from].setAttribute("tabindex", "-1");
    items[to].setAttribute("tabindex", "0");
    items[to].focus();
  });
}

function next(items, from, key) {
  if (key === "Home") return 0;
  if (key === "End") return items.length - 1;
  if (key === "ArrowRight") return Math.min(items.length - 1, from + 1);
  if (key === "ArrowLeft") return Math.max(0, from - 1);
  if (key !== "ArrowUp" && key !== "ArrowDown") return -1;
  return nearest(items.map((item) => item.getBoundingClientRect()), from, key === "ArrowDown" ? 1 : -1);
}

/** The closest box in the next row above or below. */
function nearest(boxes, from, way) {
  const middle = (box) => [box.left + box.width / 2, box.top + box.height / 2];
  const [x, y] = middle(boxes[from]);
  let best = -1;
  let least = Infinity;
  boxes.forEach((box, index) => {
    const [left, top] = middle(box);
    const down = (top - y) * way;
    const far = down * 4 + Math.abs(left - x);
    if (down > box.height / 2 && far < least) [best, least] = [index, far];
  });
  return best;
}

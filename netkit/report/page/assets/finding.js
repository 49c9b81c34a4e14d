// What is wrong, by cause: filtered, searched, unfolded.
const AT_ONCE = 60;

class Findings {
  constructor(section) {
    this.wanted = new Set(BAD);
    this.layer = "";
    this.text = "";
    this.limit = AT_ONCE;
    this.list = el("ol", { class: "causes" });
    this.count = el("p", { class: "muted", role: "status" });
    this.more = el("button", { type: "button", onclick: () => { this.limit += AT_ONCE; this.show(); } }, "Show more");
    section.append(data.causes.length ? this.controls() : "", this.count, this.list, this.more);
    this.show();
  }

  controls() {
    const search = el("input", {
      type: "search", id: "search", placeholder: "device, port, check, words…", "aria-keyshortcuts": "/",
      oninput: (event) => { this.text = event.target.value.toLowerCase(); this.again(); },
    });
    const counts = Object.fromEntries(BAD.map((verdict) => [verdict, data.causes.filter((cause) => cause.verdict === verdict).length]));
    const boxes = BAD.filter((verdict) => counts[verdict]).map((verdict) => el("label", { class: "choice" }, el("input", {
      type: "checkbox", name: "verdict", value: verdict, checked: true, onchange: (event) => this.want(verdict, event.target.checked),
    }), `${WORDS[verdict]} (${counts[verdict]})`));
    const layers = [...new Set(data.causes.map((cause) => cause.layer).filter(Boolean))];
    const select = el("select", { id: "layer", onchange: (event) => { this.layer = event.target.value; this.again(); } },
      el("option", { value: "" }, "all layers"), layers.map((layer) => el("option", { value: layer }, layer)));
    return el("div", { class: "controls", role: "search" },
      el("label", { class: "field" }, "Search", search), el("fieldset", {}, el("legend", {}, "Verdict"), boxes), el("label", { class: "field" }, "Layer", select));
  }

  want(verdict, isWanted) {
    if (isWanted) this.wanted.add(verdict); else this.wanted.delete(verdict);
    this.again();
  }

  again() { this.limit = AT_ONCE; this.show(); }

  found() {
    const terms = this.text.split(/\s+/).filter(Boolean);
    if (terms.length) this.index ||= indexed();
    return data.causes.filter((cause, index) => this.wanted.has(cause.verdict)
      && (!this.layer || cause.layer === this.layer) && terms.every((term) => this.index[index].includes(term)));
  }

  show() {
    const found = this.found();
    const left = data.causes_left_out ? `; ${counted(data.causes_left_out, "more cause")} not in this report` : "";
    this.count.textContent = data.causes.length
      ? `${WHOLE.format(found.length)} of ${counted(data.causes.length, "cause")}, the worst first${left}` : nothing();
    this.list.replaceChildren(...found.slice(0, this.limit).map((cause) => el("li", {}, unfolding(cause))));
    this.more.hidden = found.length <= this.limit;
  }
}

function nothing() {
  const { examined, unreached } = data.counts;
  if (!examined) return "Nothing could be judged, so nothing is known.";
  return `Nothing wrong was found in ${WHOLE.format(examined)} things examined${unreached ? `, but ${counted(unreached, "device")} could not be seen, or not all of it` : ""}.`;
}

/** The search text of each cause: includes every device and port of its findings, of which only some are shown. */
function indexed() {
  const names = data.causes.map(() => []);
  for (const device of data.devices) {
    causesOf(device).forEach((number) => names[number].push(device.name));
    for (let row = 0; row < device.ports.rows; row += 1) {
      causesOf(device, row).forEach((number) => names[number].push(`${device.name}:${cell(device.ports, "port", row)}`));
    }
  }
  return data.causes.map((cause, number) => `${words(cause)} ${names[number].join(" ")}`.toLowerCase());
}

function words(cause) {
  const of = (one) => [one.check, one.device, one.place, `${one.device}:${one.place}`, one.text, one.remedy, ...Object.values(one.evidence)];
  return [cause.where, cause.verdict, ...(cause.is_silenced ? ["silenced"] : []), ...(cause.silences || []), cause.layer, ...cause.devices, ...of(cause.head), ...cause.symptoms.flatMap(of)].join(" ");
}

/** A cause to unfold; what is inside is made when it is wanted. */
function unfolding(cause) {
  const { head } = cause;
  const symptoms = cause.symptoms.length + cause.symptoms_left_out;
  const summary = el("summary", {},
    badge(cause.verdict), cause.is_silenced ? el("span", { class: "silenced" }, "silenced") : null, el("span", { class: "where" }, cause.where), el("span", { class: "what" }, head.text),
    el("span", { class: "check" }, `${head.check}${symptoms ? `, ${counted(symptoms, "more finding")}` : ""}`));
  const details = el("details", { class: `cause is-${cause.verdict}` }, summary);
  const fill = () => { if (details.children.length === 1) details.append(inside(cause)); };
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  details.fill = fill;
  return details;
}

function inside(cause) {
  const { head } = cause;
  const items = cause.symptoms.map((one) => el("li", {}, badge(one.verdict), " ", link(one.device, one.place), ` ${one.text} `, el("span", { class: "check" }, one.check)));
  if (cause.symptoms_left_out) items.push(el("li", {}, `and ${counted(cause.symptoms_left_out, "more finding")}`));
  return el("div", { class: "inside" },
    list([["Where", link(head.device, head.place)], ...Object.entries(head.evidence), ...windowed(head)]),
    head.remedy ? el("p", { class: "remedy" }, el("b", {}, "What to do: "), head.remedy) : null,
    (cause.silences || []).map((text) => el("p", { class: "silences" }, text)),
    items.length ? el("p", { class: "muted" }, cause.places > 1 ? "The same elsewhere, and what was found with it" : "Related findings, mostly symptoms") : null,
    items.length ? el("ul", { class: "symptoms" }, items) : null);
}

function windowed(finding) {
  if ("window" in finding.evidence) return [];
  const device = byName.get(finding.device);
  const window = device ? device.window_s : data.window_s;
  return window ? [["Counter window", shown(window, "s")]] : [];
}

// Everything together: the summary beside the verdict, the theme, printing, keys.
function beside(place) {
  const fold = (title, content) => el("details", {}, el("summary", {}, title), content);
  const parts = [];
  if (data.unreached.length) parts.push(fold(`Not reached, or not to the end (${data.unreached.length})`, grid("Devices not reached", ["Device", "Why"], data.unreached.map((one) => [link(one.device), one.reason]))));
  if (data.skipped.length) parts.push(fold(`Not judged, by reason (${data.skipped.length + data.skipped_left_out})`, grid("Not judged", ["Check", "How many", "Why"], data.skipped.map((one) => [one.check, shown(one.number), one.reason]))));
  const rows = data.by_check.map((one) => [one.check, one.layer || "–", ...["examined", "skipped", "warn", "fail", "error"].map((name) => shown(one[name]))]);
  parts.push(fold(`Checks (${rows.length})`, grid("Checks that ran", ["Check", "Layer", "Examined", "Not judged", "Warn", "Fail", "Broken"], rows)));
  place.append(...parts);
}

const THEMES = ["auto", "light", "dark"];

function theme(button, redraw) {
  const root = document.documentElement;
  let chosen = "auto";
  const show = () => {
    root.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
    redraw();
  };
  button.addEventListener("click", () => { chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]; show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  show();
}

/** Paper is white, and nothing on it unfolds. */
function printing(heat) {
  const root = document.documentElement;
  let before = "auto";
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    unfolded = [...document.querySelectorAll("#findings details:not([open]), #beside details:not([open]):not(:last-child)")];
    unfolded.forEach((details) => { details.fill?.(); details.open = true; });
    heat.draw();
  });
  window.addEventListener("afterprint", () => {
    unfolded.forEach((details) => { details.open = false; });
    root.dataset.theme = before;
    heat.draw();
  });
}

function keys() {
  document.addEventListener("keydown", (event) => {
    const search = document.getElementById("search");
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || isTyping || !search || document.getElementById("detail").open) return;
    event.preventDefault();
    search.focus();
  });
}

beside(document.getElementById("beside"));
picture(document.getElementById("fabric"));
new Findings(document.getElementById("findings"));
const heat = data.has_facts ? new Heat(document.getElementById("heatmap")) : { draw() {} };
if (!data.has_facts) document.getElementById("heatmap").append(el("p", { class: "muted" }, "A stored run keeps its verdicts, not the facts of ports: make the report from the devices or from a snapshot to see it."));
trends(document.getElementById("trends"));
theme(document.getElementById("theme"), () => heat.draw());
printing(heat);
keys();
new Detail(document.getElementById("detail"));
document.documentElement.dataset.readyMs = String(Math.round(performance.now()));

// Trends from run to run, as small charts.
function trends(section) {
  const { runs, series } = data.trends;
  if (!runs.length && !series.length) {
    section.append(el("p", { class: "muted" }, "No store was given: netkit check --store keeps runs, netkit report --store shows how they went."));
    return;
  }
  if (runs.length) section.append(history_of(runs));
  if (series.length) section.append(el("h3", {}, "Where something is wrong with a module"), el("div", { class: "charts" }, series.map(chart)));
}

function history_of(runs) {
  const [wide, high] = [1100, 90];
  const most = Math.max(1, ...runs.map((run) => run.fail + run.warn + run.error));
  const step = Math.min(40, wide / runs.length);
  const bars = runs.map((run, index) => bar(run, index * step, Math.max(2, step - 2), high, most));
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${high + 4}`, preserveAspectRatio: "xMinYMid", class: "bars", role: "img", "aria-label": `Findings of ${counted(runs.length, "run")}` }, bars);
  const rows = runs.toReversed().map((run) => [run.run, when(run.taken_s), badge(run.verdict), shown(run.fail), shown(run.warn), shown(run.examined), shown(run.unreached)]);
  return el("div", {},
    el("figure", { class: "card" }, el("figcaption", {}, `Findings of ${counted(runs.length, "stored run")}, ${when(runs[0].taken_s)} to ${when(runs.at(-1).taken_s)}; the tallest bar is ${counted(most, "finding")}`), drawing),
    el("details", {}, el("summary", {}, "As a table"), grid("Stored runs, the newest first", ["Run", "Taken", "Verdict", "Fail", "Warn", "Examined", "Not reached"], rows)));
}

function bar(run, x, width, high, most) {
  let y = high;
  const part = (state, number) => {
    if (!number) return null;
    const height = Math.max(2, (number / most) * (high - 4));
    y -= height;
    return svg("rect", { x, y, width, height, class: `is-${state}` });
  };
  const parts = [part("warn", run.warn), part("fail", run.fail), part("error", run.error)];
  const base = svg("rect", { x, y: high + 1, width, height: 3, class: `is-${run.verdict === "skipped" ? "unknown" : run.verdict}` });
  return svg("g", {}, svg("title", {}, `${when(run.taken_s)}: ${run.fail} fail, ${run.warn} warn, ${run.error} broken`), parts, base);
}

/** A line over time with its first, last, least and most value in words. */
function chart(series) {
  const [wide, high, edge] = [260, 64, 4];
  const times = series.points.map(([at]) => at);
  const values = series.points.map(([, value]) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const span = Math.max(most - least, 0.5);
  const x = (at) => edge + ((at - times[0]) / Math.max(1, times.at(-1) - times[0])) * (wide - 2 * edge);
  const y = (value) => high - edge - ((value - least) / span) * (high - 2 * edge);
  const path = series.points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const text = `${series.device}:${series.place} ${series.quantity}: ${shown(values[0], series.unit)} to ${shown(values.at(-1), series.unit)}`;
  return el("figure", { class: "chart card" },
    el("figcaption", {}, link(series.device, series.place), ` ${series.quantity}`),
    svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": text }, svg("path", { class: "line", d: path }), svg("circle", { cx: x(times.at(-1)), cy: y(values.at(-1)), r: 3 })),
    el("p", { class: "muted" }, `${shown(values[0], series.unit)} → ${shown(values.at(-1), series.unit)}, between ${shown(least)} and ${shown(most, series.unit)} since ${when(times[0])}`));
}

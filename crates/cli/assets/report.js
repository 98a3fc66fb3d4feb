"use strict";
// Draws the report's charts. Their values stand in the page as JSON; nothing is loaded.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // Four digits at most in the largest unit that is not larger than the value.
  const scaled = (units) => (value) => {
    if (value == null) return "";
    if (value === 0) return "0";
    const [size, unit] = units.find(([size]) => Math.abs(value) >= size * 0.99995) || units[units.length - 1];
    return parseFloat((value / size).toPrecision(4)) + (unit ? " " + unit : "");
  };
  const show = {
    ns: scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]),
    B: scaled([[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]),
    B_per_s: scaled([[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "KB/s"], [1, "B/s"]]),
    bps: scaled([[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]]),
    share: (value) => value == null ? "" : parseFloat((value * 100).toPrecision(3)) + " %",
    factor: (value) => value == null ? "" : parseFloat(value.toPrecision(3)) + "×",
    per_us: (value) => value == null ? "" : String(parseFloat(value.toPrecision(3))),
  };

  const paths = {
    stepped: uPlot.paths.stepped({ align: 1 }),
    linear: uPlot.paths.linear(),
  };

  function options(id, chart, width) {
    const indexed = chart.x_unit === "index";
    const showX = indexed ? (value) => chart.labels[value] ?? "" : show[chart.x_unit];
    const showY = show[chart.y_unit];
    const axis = { stroke: color("--soft"), font: "12px system-ui, sans-serif", grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false } };
    const log = (values) => values.map((value) => value == null ? "" : value);
    const label = (format) => (u, splits) => log(splits).map((value) => value === "" ? "" : format(value));
    const widest = Math.max(...chart.series.flatMap((line) => line.y.map((value) => showY(value).length)), 4);
    const every = indexed ? Math.ceil(chart.labels.length / Math.max(2, Math.floor(width / 74))) : 1;
    return {
      width, height: 236,
      padding: [10, 26, 0, 0],
      cursor: { points: { size: 6 }, drag: { x: !indexed, y: false }, sync: chart.x_unit === "ns" && id !== "completion" ? { key: "time" } : undefined },
      legend: { live: true },
      scales: {
        x: { time: false, distr: chart.x_log ? 3 : 1, range: indexed ? [-0.3, chart.labels.length - 0.7] : undefined },
        y: { distr: chart.y_log ? 3 : 1, range: (u, low, high) => chart.y_log ? [Math.max(low * 0.8, 1e-6), high * 1.3] : chart.y_unit === "share" && id === "completion" ? [0, 1] : chart.y_unit === "factor" ? [Math.min(1, low), high * 1.08] : [0, (high || 1) * 1.08] },
      },
      axes: [
        { ...axis, values: label(showX), splits: indexed ? () => chart.labels.map((_, index) => index).filter((index) => index % every === 0) : undefined, space: indexed ? 10 : 70, size: 34 },
        { ...axis, values: label(showY), size: 18 + Math.min(widest, 11) * 6.4, space: 38 },
      ],
      series: [
        { label: id === "phases" ? "phase" : indexed ? "up to" : id === "completion" ? "within" : "at", value: (u, value) => value == null ? "" : showX(value) },
        ...chart.series.map((line, index) => ({
          label: line.label, stroke: color("--c" + index % 8), width: 1.8, spanGaps: true,
          paths: id === "completion" ? paths.stepped : paths.linear,
          points: { show: indexed, size: 7, fill: color("--card") },
          value: (u, value) => showY(value),
        })),
      ],
    };
  }

  // Lines of one grid share their x values; others are put on a common one.
  function table(chart) {
    const first = JSON.stringify(chart.series[0].x);
    if (chart.series.every((line) => JSON.stringify(line.x) === first)) {
      return [chart.series[0].x, ...chart.series.map((line) => line.y)];
    }
    return uPlot.join(chart.series.map((line) => {
      // A step up leaves two values at one place: the last counts.
      const x = [], y = [];
      line.x.forEach((value, index) => {
        if (x.length && x[x.length - 1] === value) y[y.length - 1] = line.y[index];
        else { x.push(value); y.push(line.y[index]); }
      });
      return [x, y];
    }));
  }

  let drawn = [];
  function draw(fixedWidth) {
    for (const plot of drawn) plot.destroy();
    drawn = [];
    for (const place of document.querySelectorAll("[data-chart]")) {
      const chart = charts[place.dataset.chart];
      if (!chart) continue;
      const width = fixedWidth || Math.max(220, place.clientWidth);
      drawn.push(new uPlot(options(place.dataset.chart, chart, width), table(chart), place));
    }
  }

  draw();
  let width = innerWidth, waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => draw(), 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => { root.dataset.print = ""; draw(600); });
  addEventListener("afterprint", () => { delete root.dataset.print; draw(); });

  // What stands behind a part of the topology, for mouse and finger.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const point = (event) => {
    const target = event.target.closest?.("[data-tip]");
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
  };
  addEventListener("pointermove", point);
  addEventListener("pointerdown", point);
})();

"use strict";
// Draws what /view.json says, once a second. Everything that comes is text: it never becomes markup.
(() => {
  const EVERY = 1000, PATIENCE = 5000;
  const at = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const open = new Set();
  let last = null, heard = Date.now(), shown = false;

  const element = (name, classes, ...content) => {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    made.append(...content.filter((part) => part != null));
    return made;
  };
  const drawn = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const scaled = (units) => (value) => {
    if (value == null) return "–";
    if (value === 0) return "0";
    const [size, unit] = units.find(([size]) => Math.abs(value) >= size * 0.99995) || units[units.length - 1];
    return parseFloat((value / size).toPrecision(3)) + (unit ? " " + unit : "");
  };
  const bps = scaled([[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]]);
  const bytes = scaled([[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]);
  const many = scaled([[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, ""]]);
  const share = (value) => value == null ? "–" : value === 0 ? "0 %" : value < 0.001 ? "< 0.1 %" : parseFloat((value * 100).toPrecision(2 + (value >= 1))) + " %";
  const heat = (value) => !value ? 0 : value >= 0.6 ? 5 : value >= 0.3 ? 4 : value >= 0.1 ? 3 : value >= 0.01 ? 2 : 1;

  function headline(view) {
    const going = view.episodes.filter((episode) => !episode.ended && episode.kind === "finding");
    const title = at("title");
    title.className = view.kind;
    title.textContent = view.kind !== "cause" ? view.verdict
      : going.length ? going[0].title + " at " + going[0].place : view.verdict + " – over";
    at("summary").textContent = view.summary;
    const sources = going.length;
    at("reach").textContent = view.held_ports === 0 ? "" :
      view.held_ports + " of " + view.all_ports + (view.held_ports === 1 ? " port is held" : " ports are held") +
      (view.many_held_since ? ", many at once since " + view.many_held_since : "") +
      (sources ? ". The ports that report pauses are symptoms of " + (sources === 1 ? "one source." : sources + " sources.") : ".");
    const { ports, heard, silent, uncabled } = view.coverage;
    const doubt = [];
    if (heard < ports) doubt.push((ports - heard) + " of " + ports + " ports were not heard: " + silent.slice(0, 8).join(", "));
    if (uncabled.length) doubt.push("nobody knows where the cables of " + uncabled.slice(0, 8).join(", ") + " lead");
    at("doubt").hidden = !doubt.length;
    at("doubt").textContent = doubt.join("; ");
    document.title = (going.length ? "● " + going[0].title + " at " + going[0].place : view.verdict) + " – softfabric watch";
  }

  const list = (name, lines, make) => lines && lines.length ? [element("h3", "", name), element("ul", "", ...lines.map((line) => element("li", "", ...[].concat(make(line)))))] : [];

  function chain(episode) {
    const made = element("div", "chain", element("p", "", episode.summary));
    made.append(...list("Evidence", episode.evidence, (line) => [element("b", "", line.port), " ", element("code", "", line.counter), " ", line.says]));
    if (episode.trail && episode.trail.length) {
      const steps = [];
      episode.trail.forEach((step, index) => {
        if (index === 0) steps.push(element("li", "", step.port));
        steps.push(element("li", "by", "held " + share(step.held) + " by →"));
        steps.push(element("li", index === episode.trail.length - 1 ? "end" : "", step.by));
      });
      made.append(element("h3", "", "From a symptom to the source"), element("ol", "trail", ...steps));
    }
    made.append(...list("Would confirm it", episode.confirm, (line) => line));
    made.append(...list("What to do", episode.actions, (action) => [action.act, " ", element("span", "price", "(price: " + action.price + ")")]));
    made.append(...list("What not to do", episode.avoid, (line) => element("span", "avoid", line)));
    return made;
  }

  function timeline(view) {
    at("timeline-note").textContent = !view.episodes.length ? "Nothing was wrong in this time."
      : "What began and ended; open one for its evidence." + (view.all_episodes > view.episodes.length ? " The latest " + view.episodes.length + " of " + view.all_episodes + "." : "");
    const focused = document.activeElement && document.activeElement.dataset.key;
    const lines = view.episodes.map((episode) => {
      const key = episode.title + "|" + episode.place + "|" + episode.since_ns;
      const details = [episode.certainty + " certainty", episode.explains ? "explains " + share(episode.explains) + " of all waiting" : null].filter(Boolean).join(", ");
      const button = element("button", "",
        element("time", "", episode.since + " – " + (episode.ended ? episode.until : "now") + " (" + episode.lasted + ")"),
        element("span", "what", episode.title + " at " + episode.place),
        element("span", "sure", details));
      button.dataset.key = key;
      button.setAttribute("aria-expanded", open.has(key));
      button.addEventListener("click", () => { open.has(key) ? open.delete(key) : open.add(key); draw(last); });
      return element("li", (episode.ended ? "ended " : "open ") + (episode.kind === "finding" ? "found" : "differs"), button, open.has(key) ? chain(episode) : null);
    });
    at("timeline").replaceChildren(...lines);
    if (focused) for (const button of at("timeline").querySelectorAll("button")) if (button.dataset.key === focused) button.focus();
  }

  function tiles(view) {
    const end = (values) => values.length ? values[values.length - 1] : null;
    const worst = view.ports.reduce((a, b) => (b.held || 0) > (a ? a.held || 0 : -1) ? b : a, null);
    const marks = view.ports.reduce((a, b) => (b.marked || 0) > (a ? a.marked || 0 : -1) ? b : a, null);
    const deep = view.ports.reduce((a, b) => (b.queue_bytes || 0) > (a ? a.queue_bytes || 0 : -1) ? b : a, null);
    const lost = view.trend.drops.reduce((a, b) => a + b, 0);
    const tile = (name, value, note) => element("div", "tile", element("dt", "", name), element("dd", "", value), element("p", "", note));
    at("tiles").replaceChildren(
      tile("Held longest", share(worst && worst.held), worst && worst.held ? worst.name + (worst.class != null ? ", class " + worst.class : "") : "no port is held"),
      tile("ECN marks", share(end(view.trend.marked)), marks && marks.marked ? "most at " + marks.name + ", " + share(marks.marked) : "of packets that switches sent"),
      tile("Deepest queue", bytes(deep && deep.queue_bytes), deep && deep.queue_bytes ? deep.name : "no switch tells"),
      tile("Received", bps(end(view.trend.received_bps)), "by all hosts together"),
      tile("Lost", many(lost), "packets in " + view.trend.at.length + " polls"),
      tile("Baseline", view.baseline ? String(view.baseline.deviations) : "–", view.baseline ? (view.baseline.deviations === 1 ? "difference" : "differences") + " of " + view.baseline.compared + " compared" + (view.baseline.explained ? "; " + view.baseline.explained + " more are symptoms of findings" : "") : "none is given"));
  }

  function charts(view) {
    const { trend } = view;
    const figure = (name, values, show, most, bad) => {
      const known = values.map((value) => value == null ? 0 : value);
      const top = Math.max(most || 0, ...known) || 1;
      const x = (index) => known.length < 2 ? 0 : index / (known.length - 1) * 100;
      const points = known.map((value, index) => x(index).toFixed(2) + " " + (40 - value / top * 38).toFixed(2));
      const line = points.length ? "M" + points.join("L") : "";
      const svg = drawn("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": name });
      svg.append(drawn("path", { class: "area", d: line + (line ? "L100 40L0 40Z" : "") }), drawn("path", { class: "line", d: line }));
      const now = values.length ? values[values.length - 1] : null;
      return element("figure", bad ? "bad" : "",
        element("figcaption", "", element("span", "", name), element("b", "", show(now))),
        svg,
        element("div", "axis", element("span", "", trend.at[0] || ""), element("span", "", "most " + show(Math.max(...known, 0)))));
    };
    at("charts").replaceChildren(
      figure("Ports held", trend.held_ports, String, 3, true),
      figure("Longest pause, share of the time", trend.worst, share, 0.05, true),
      figure("ECN marks, share of packets", trend.marked, share, 0.01),
      figure("Deepest queue", trend.queue_bytes, bytes),
      figure("Received by hosts", trend.received_bps, bps),
      figure("Packets lost in a poll", trend.drops, many, 1, true));
  }

  function picture(view) {
    const svg = at("picture");
    if (!svg) return;
    svg.querySelectorAll("path.link").forEach((path, index) => {
      const look = view.bundles[index];
      if (!look) return;
      path.setAttribute("class", "link heat" + look.heat + " " + look.state);
      path.dataset.tip = look.tip;
    });
    svg.querySelectorAll("g.node").forEach((node, index) => {
      const look = view.cells[index];
      if (!look) return;
      node.setAttribute("class", "node " + look.state);
      node.dataset.tip = look.tip;
      const shape = node.querySelector(".host, .switch");
      shape.setAttribute("class", (shape.classList.contains("host") ? "host" : "switch") + " heat" + look.heat);
    });
    // Where the picture is wider than the window, the first source is shown.
    const source = svg.querySelector("g.node.source"), frame = svg.parentElement;
    if (source && !shown && frame.scrollWidth > frame.clientWidth) {
      const place = source.getBoundingClientRect(), seen = frame.getBoundingClientRect();
      frame.scrollLeft += place.left + place.width / 2 - seen.left - seen.width / 2;
    }
    shown = !!source;
  }

  function ports(view) {
    const heads = ["port", "state", "held", "holds its neighbour", "sends", "receives", "ECN marks", "CNPs a second", "queue", "buffer", "lost a second", "damaged a second"];
    at("ports").tHead.replaceChildren(element("tr", "", ...heads.map((head) => element("th", "", head))));
    const rows = view.ports.map((port) => {
      const meter = element("span", "meter", element("i", "heat" + heat(port.held)));
      meter.firstChild.style.width = 100 * Math.min(1, port.held || 0) + "%";
      const cells = [
        element("td", "state " + port.state, port.state),
        element("td", "", share(port.held), port.class != null && port.held ? element("small", "", " class " + port.class) : null, meter),
        ...[share(port.holds), bps(port.transmits_bps), bps(port.receives_bps), share(port.marked), many(port.notifications_per_s), bytes(port.queue_bytes), bytes(port.buffer_bytes), many(port.drops_per_s), many(port.damaged_per_s)].map((text) => element("td", "", text)),
      ];
      const name = element("th", "", port.name, port.peer ? element("small", "", " → " + port.peer) : null);
      name.scope = "row";
      return element("tr", "", name, ...cells);
    });
    at("ports").tBodies[0].replaceChildren(...rows);
  }

  function hosts(view) {
    const usual = view.hosts.some((host) => host.usual_transmits_bps != null);
    at("hosts-note").textContent = (usual ? "Sent (blue) and received (green), against what each did at commissioning." : "Sent (blue) and received (green), against the busiest host; with a baseline, against what each did at commissioning.") +
      (view.all_hosts > view.hosts.length ? " The worst " + view.hosts.length + " of " + view.all_hosts + "." : "");
    const most = Math.max(1, ...view.hosts.flatMap((host) => [host.transmits_bps || 0, host.receives_bps || 0]));
    const track = (value, of) => {
      const bar = element("span", "track", element("i", ""));
      bar.firstChild.style.width = Math.min(100, 100 * (value || 0) / (of || most)) + "%";
      return bar;
    };
    at("hosts").replaceChildren(...view.hosts.map((host) => element("div", "hostline " + host.state,
      element("span", "name", host.name),
      element("span", "rates", bps(host.transmits_bps) + " ↑  " + bps(host.receives_bps) + " ↓"),
      track(host.transmits_bps, host.usual_transmits_bps), track(host.receives_bps, host.usual_receives_bps))));
  }

  function draw(view) {
    if (!view || view.verdict == null) { at("mode").textContent = view ? view.mode : "connecting"; return; }
    at("mode").textContent = view.mode;
    at("time").textContent = view.now;
    at("link").className = view.trouble || view.stale ? "stale" : "";
    headline(view); timeline(view); tiles(view); charts(view); picture(view); ports(view); hosts(view);
    at("footer").textContent = "The diagnosis looks at the last " + seconds(view.window_ns) + " in stretches of " + seconds(view.stretch_ns) + ". " + view.all_ports + " ports.";
  }
  const seconds = (ns) => scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]])(ns);

  const tip = element("div", "");
  tip.id = "tip"; tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const over = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !over || !over.dataset.tip;
    if (tip.hidden) return;
    tip.textContent = over.dataset.tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  });

  async function ask() {
    try {
      const answer = await fetch("view.json", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) throw new Error(answer.status);
      const view = await answer.json();
      heard = Date.now();
      document.body.classList.remove("lost");
      // Another topology needs another picture.
      if (String(view.picture) !== document.body.dataset.picture && view.picture !== 0) { location.reload(); return; }
      last = view;
      draw(view);
    } catch (error) {
      const silent = Math.round((Date.now() - heard) / 1000);
      document.body.classList.add("lost");
      at("link").className = "lost";
      at("mode").textContent = "softfabric does not answer, for " + silent + " s: what is below is old";
    }
    setTimeout(ask, EVERY);
  }
  ask();
})();

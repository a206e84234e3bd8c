// Pictures: the graph of a topology, the ring of a unit, and lines over time.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Neighbours in number differ most in colour.
function colour(number) { return `hsl(${(number * 137.5 + 205) % 360} 62% 52%)`; }

function short(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "";
  const size = Math.abs(n);
  if (size >= 1e9) return (n / 1e9).toFixed(1) + " G";
  if (size >= 1e6) return (n / 1e6).toFixed(1) + " M";
  if (size >= 1e4) return (n / 1e3).toFixed(1) + " k";
  if (size >= 100 || Number.isInteger(n)) return Math.round(n).toString();
  return n.toFixed(1);
}

// Seconds in the two largest units that say something.
function lasted(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const pair = (large, a, small, b) => `${Math.floor(whole / large)} ${a}${whole % large >= small ? ` ${Math.floor((whole % large) / small)} ${b}` : ""}`;
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return pair(60, "min", 1, "s");
  return whole < 172800 ? pair(3600, "h", 60, "min") : pair(86400, "d", 3600, "h");
}

// Where a second may count: 1.4 s.
function since(seconds) { return seconds < 60 ? `${Math.max(0, seconds).toFixed(1)} s` : lasted(seconds); }

// A moment: the time of today, else the date, too.
function moment(seconds) {
  const then = new Date(1000 * seconds);
  return then.toDateString() === new Date().toDateString() ? then.toLocaleTimeString() : then.toLocaleString();
}

function bytes(n) { const said = short(n); return / [kMG]$/.test(said) ? `${said}B` : `${said} B`; }

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000];
function tick(t) {
  if (t < 120) return `${+t.toFixed(2)} s`;
  if (t < 7200) return `${+(t / 60).toFixed(1)} min`;
  return t < 172800 ? `${+(t / 3600).toFixed(1)} h` : `${+(t / 86400).toFixed(1)} d`;
}

const WIDTH = 172, HEIGHT = 80, CELL = 9;

// The boxes stay where they are until units or edges are others: numbers change in place.
class Graph {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.shape = "";
  }

  draw(units, rates, chosen, late, loads) {
    const narrow = innerWidth < 700;
    const shape = JSON.stringify([narrow, units.map((u) => [u.name, u.edges, u.sinks, u.chained_to])]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.lay(units);
    }
    for (const unit of units) {
      const box = this.boxes.get(unit.name);
      box.group.classList.toggle("chosen", unit.name === chosen);
      this.cells(box, unit, loads);
      box.width.textContent = unit.chained_to ? `in ${unit.chained_to}` : `${unit.kind} × ${unit.sub_units}`;
      const p99 = unit.kind === "bolt" && late(unit) ? ` · p99 ${short(late(unit))} ms` : "";
      const rate = rates ? `${short(rates.get(unit.name) ?? 0)}/s` : unit.kind === "spout" ? `${short(unit.tuples_out)} out` : `${short(unit.tuples_in)} in`;
      box.rate.textContent = rate + p99;
      box.group.setAttribute("aria-label",
        `${unit.name}, ${box.width.textContent}, ${box.rate.textContent}, ${unit.backlog} tuples wait`);
      for (const edge of this.edges.filter((e) => e.to === unit.name)) {
        const full = unit.backlog > 1000 && unit.backlog > (rates?.get(unit.name) ?? 0);
        edge.group.classList.toggle("full", full);
        edge.label.textContent = unit.backlog ? `${edge.grouping} · ${short(unit.backlog)} wait` : edge.grouping;
      }
    }
  }

  // A cell for each sub-unit, in its colour of the ring and as full as it is busy; those of a host stand together.
  cells(box, unit, loads) {
    const parts = [...(unit.parts ?? [])].sort((a, b) => a.host.localeCompare(b.host) || a.number - b.number);
    const hosts = [...new Set(parts.map((p) => p.host))];
    const step = Math.min(CELL + 2, (WIDTH - 16 - 5 * hosts.length) / Math.max(1, parts.length));
    let x = box.x - (parts.length * step + 5 * (hosts.length - 1)) / 2;
    box.cells.replaceChildren(...parts.map((part, i) => {
      if (i && part.host !== parts[i - 1].host) x += 5;
      const busy = Math.min(1, loads.get(`${unit.name}/${part.number}`)?.busy ?? 0);
      const cell = svg("rect", { x: x.toFixed(1), y: box.y + 23, width: Math.max(1, step - 2).toFixed(1), height: CELL, rx: 2, class: "cell",
        fill: colour(part.number), "fill-opacity": (0.25 + 0.75 * busy).toFixed(2), "data-host": part.host },
        svg("title", {}, `sub-unit ${part.number} on ${part.host}, ${Math.round(100 * busy)} % busy`));
      x += step;
      return cell;
    }));
  }

  lay(units) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: (innerWidth < 700) === units.some((u) => u.edges.length || u.sinks.length) ? "TB" : "LR", nodesep: 28, ranksep: 132, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const unit of units) graph.setNode(unit.name, { width: WIDTH, height: HEIGHT });
    for (const unit of units) {
      if (unit.chained_to) graph.setEdge(unit.chained_to, unit.name, { grouping: "chained" }, "chained");
      for (const edge of unit.edges) graph.setEdge(unit.name, edge.target, { grouping: edge.grouping }, edge.grouping);
      for (const [name, kind] of unit.sinks) {
        graph.setNode(`sink ${name}`, { width: 130, height: 44, name, kind });
        graph.setEdge(unit.name, `sink ${name}`, { grouping: "" }, "sink");
      }
    }
    dagre.layout(graph);
    const { width, height } = graph.graph();
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "topology" });
    drawing.append(svg("defs", {}, svg("marker",
      { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
      svg("path", { d: "M0 0L8 4L0 8z" }))));
    this.edges = [];
    for (const each of graph.edges()) {
      const { points, grouping } = graph.edge(each);
      const middle = points[Math.floor(points.length / 2)];
      const beside = innerWidth < 700 ? { x: middle.x + 6, y: middle.y + 4 } : { x: middle.x, y: middle.y - 7, "text-anchor": "middle" };
      const label = svg("text", { ...beside, class: "soft" }, grouping);
      const path = svg("path", { d: "M" + points.map((p) => `${p.x} ${p.y}`).join("L"), "marker-end": "url(#tip)" });
      const group = svg("g", { class: "edge" }, path, label);
      drawing.append(group);
      this.edges.push({ group, label, grouping, to: each.w });
    }
    this.boxes = new Map();
    for (const name of graph.nodes()) {
      const node = graph.node(name);
      const corner = { x: node.x - node.width / 2, y: node.y - node.height / 2, width: node.width, height: node.height, rx: 9 };
      const line = (dy, kind, text = "") => svg("text", { x: node.x, y: node.y + dy, "text-anchor": "middle", class: kind }, text);
      if (node.kind) {
        drawing.append(svg("g", { class: "sink" }, svg("rect", corner), line(-3, "", node.name), line(13, "soft", node.kind)));
        continue;
      }
      const box = { x: node.x, y: node.y, width: line(-5, "soft"), rate: line(12, "soft"), cells: svg("g") };
      box.group = svg("g", { class: "unit", tabindex: 0, role: "button", "data-unit": name },
        svg("rect", { ...corner, class: "box" }), line(-22, "", name), box.width, box.rate, box.cells);
      box.group.addEventListener("click", () => this.choose(name));
      box.group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.choose(name); }
      });
      this.boxes.set(name, box);
      drawing.append(box.group);
    }
    this.place.replaceChildren(drawing);
  }
}

// A donut: an arc for each range of the ring, in its owner's colour; the longer it reaches out, the more it works.
class Ring {
  constructor(place) {
    this.place = place;
    this.unit = "";
    this.known = new Set();
  }

  draw(unit, loads) {
    const parts = unit.parts ?? [];
    if (unit.name !== this.unit) {
      this.unit = unit.name;
      this.known = new Set(parts.map((p) => p.number));
    }
    const most = Math.max(1e-9, ...loads.values());
    const drawing = svg("svg", { viewBox: "-110 -110 220 220", role: "img", "aria-label": `who owns which keys of ${unit.name}` });
    for (const part of parts) {
      const outer = 66 + 38 * ((loads.get(part.number) ?? 0) / most);
      for (const [from, to] of part.ranges) {
        const arc = svg("path", { d: this.arc(from, to, 46, outer), fill: colour(part.number), class: "arc", "data-part": part.number });
        if (!this.known.has(part.number)) arc.classList.add("new");
        arc.append(svg("title", {}, `sub-unit ${part.number}: ${(100 * (to - from)).toFixed(1)} % of the ring`));
        drawing.append(arc);
      }
    }
    const words = parts.some((p) => p.ranges.length) ? `${parts.length}` : "no ring";
    drawing.append(svg("text", { "text-anchor": "middle", y: 4 }, words),
      svg("text", { "text-anchor": "middle", y: 20, class: "soft" }, parts.some((p) => p.ranges.length) ? "own the keys" : "tuples take turns"));
    this.place.replaceChildren(drawing);
    // An arc that is new keeps its mark for two seconds, over the redrawings in between.
    for (const part of parts) if (!this.known.has(part.number)) setTimeout(() => this.known.add(part.number), 2000);
  }

  arc(from, to, inner, outer) {
    const span = Math.min(to - from, 0.9999); // two ends in one place would be no arc at all
    const point = (at, radius) => {
      const angle = 2 * Math.PI * at - Math.PI / 2;
      return `${(radius * Math.cos(angle)).toFixed(3)} ${(radius * Math.sin(angle)).toFixed(3)}`;
    };
    const long = span > 0.5 ? 1 : 0;
    return `M${point(from, outer)}A${outer} ${outer} 0 ${long} 1 ${point(from + span, outer)}`
      + `L${point(from + span, inner)}A${inner} ${inner} 0 ${long} 0 ${point(from, inner)}Z`;
  }
}

// One line for each unit over seconds of the run.
class Chart {
  constructor(place, steps = false) {
    this.place = place;
    this.steps = steps;
    this.names = "";
  }

  draw(names, times, values) {
    if (!times.length) return;
    const data = [times, ...values];
    if (this.names !== names.join("\n")) {
      this.names = names.join("\n");
      this.plot?.destroy();
      const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--soft");
      const grid = { stroke: () => getComputedStyle(document.documentElement).getPropertyValue("--line"), width: 1 };
      const axis = { stroke: ink, grid, ticks: grid };
      this.plot = new uPlot({
        width: this.place.clientWidth, height: 190, legend: { live: false }, cursor: { show: false },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
        axes: [{ ...axis, incrs: STEPS, space: 60, values: (_, ticks) => ticks.map(tick) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(short) }],
        series: [{ label: "s" }, ...names.map((name, i) => ({
          label: name, stroke: colour(i), width: 2, spanGaps: true, points: { show: false },
          ...(this.steps ? { paths: uPlot.paths.stepped({ align: -1 }) } : {}),
        }))],
      }, data, this.place);
      return;
    }
    this.plot.setData(data);
  }

  fit() { this.plot?.setSize({ width: this.place.clientWidth, height: 190 }); }
}

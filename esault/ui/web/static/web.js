// What the page is told, put where it is shown. Texts of users are only ever set as text.
"use strict";

const at = (id) => document.getElementById(id);
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const state = { run: "", control: false, chosen: "", snapshot: null, past: [], rates: new Map(), loads: new Map(),
  windows: [], changes: [], lines: [], source: null };
const graph = new Graph(at("graph"), (name) => { state.chosen = name; show(); });
const ring = new Ring(at("ring"));
const charts = { rate: new Chart(at("chart-rate")), p99: new Chart(at("chart-p99")), width: new Chart(at("chart-width"), true),
  tried: new Chart(at("chart-tried"), true) };
const MOST_WINDOWS = 7200;
const text = (value) => ({ text: value, kind: "text" });
const PHASES = { running: "running", starting: "starting", ended: "ended" };

function fill(table, heads, rows) {
  const row = (cells, name) => element("tr", {}, ...cells.map((cell) => {
    const made = element(name, cell?.kind ? { class: cell.kind } : {});
    made.append(...(cell?.node ? [cell.node] : []), String(cell?.text ?? cell ?? ""));
    return made;
  }));
  at(table).replaceChildren(element("thead", {}, row(heads, "th")), element("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}

function difference(now, before, seconds) { return Math.max(0, now - before) / seconds; }

// Sub-units report a few times a second, not all at once: rates are over two seconds.
function measure(snapshot) {
  state.past.push(snapshot);
  while (state.past.length > 2 && snapshot.now - state.past[1].now >= 2) state.past.shift();
  const before = state.past[0];
  const seconds = snapshot.now - before.now;
  if (!(seconds > 0.05)) return;
  for (const unit of snapshot.units) {
    const old = before.units.find((u) => u.name === unit.name);
    if (!old) continue;
    const name = unit.kind === "spout" ? "tuples_out" : "tuples_in";
    state.rates.set(unit.name, difference(unit[name], old[name], seconds));
    for (const part of unit.parts ?? []) {
      const was = (old.parts ?? []).find((p) => p.number === part.number);
      state.loads.set(`${unit.name}/${part.number}`, {
        rate: was ? difference(part.tuples, was.tuples, seconds) : 0, busy: was ? difference(part.busy, was.busy, seconds) : 0,
      });
    }
  }
}

function show() {
  const snapshot = state.snapshot;
  if (!snapshot) return;
  const units = snapshot.units;
  if (!units.some((u) => u.name === state.chosen)) {
    state.chosen = (units.find((u) => (u.parts ?? []).some((p) => p.ranges.length)) ?? units[0])?.name ?? "";
  }
  document.title = `${snapshot.topology} · eSault`;
  at("name").textContent = snapshot.topology;
  const phase = snapshot.failure ? "failed" : snapshot.draining ? "ending in order" : PHASES[snapshot.phase] ?? snapshot.phase;
  if (state.source || snapshot.report) badge(phase);
  const facts = { [snapshot.report ? "ran for" : "running for"]: lasted(snapshot.seconds), "batches in flight": snapshot.report ? "" : short(snapshot.roots_open ?? 0),
    "sent again": snapshot.roots_replayed, checkpoint: snapshot.checkpoint, "went back": snapshot.restores,
    "processes replaced": snapshot.deaths, changes: snapshot.changes,
    slots: snapshot.slots ? `${snapshot.slots - snapshot.free_slots} of ${snapshot.slots}` : 0 };
  at("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  problem(snapshot.failure ?? "");
  graph.draw(units, snapshot.report ? null : state.rates, state.chosen, (unit) => state.windows.at(-1)?.units[unit.name]?.[2] ?? unit.p99_ms, state.loads);
  showUnit(units.find((u) => u.name === state.chosen));
  const trouble = ["dropped", "late", "errors", "dead_letters", "skipped", "state_lost"].filter((name) => units.some((u) => u[name]));
  fill("units", ["unit", text("kind"), "sub-units", "in", "out", "waiting", "p50 ms, whole run", "p99 ms, whole run", "watermark", ...trouble.map((t) => t.replace("_", " "))],
    units.map((u) => [u.name, text(u.kind), u.sub_units, u.kind === "spout" ? "" : short(u.tuples_in), short(u.tuples_out), short(u.backlog),
      u.p50_ms ? u.p50_ms.toFixed(2) : "", u.p99_ms ? u.p99_ms.toFixed(2) : "",
      u.watermark == null ? "" : snapshot.now - u.watermark < 86400 ? `${since(snapshot.now - u.watermark)} ago` : moment(u.watermark),
      ...trouble.map((name) => ({ text: u[name] || "", kind: u[name] ? "bad" : "" }))]));
  at("why").replaceChildren(...(snapshot.scaling ?? []).map((line) => element("li", {}, line)));
  showSinks(units, snapshot);
  showCheckpoints(snapshot);
  lookAtDead(units);
  const hosts = Object.entries(snapshot.hosts ?? {});
  at("hosts-section").hidden = !hosts.length;
  fill("hosts", ["host", "slots", "free", "busy", "sub-units"], hosts.map(([name, h]) =>
    [h.draining ? `${name} (draining)` : name, h.slots, h.free, h.cpu == null ? "" : `${Math.round(100 * h.cpu)} %`, h.sub_units.join(" ")]));
}

function showSinks(units, snapshot) {
  const found = units.flatMap((unit) => (unit.sinks ?? []).map((sink) => [unit, ...sink]));
  at("sinks-section").hidden = !found.length;
  const until = (snapshot.checkpoints ?? []).at(-1);
  const shown = !until ? "as they commit" : `up to checkpoint ${until[0]}, ${since(snapshot.now - until[1])} ago`;
  fill("sinks", ["sink", text("kind"), text("behind"), text("where"), "rows landed", text("shown")],
    found.map(([unit, name, kind, where]) =>
      [name, text(kind), text(unit.name), { text: where, kind: "reason text" }, (unit.landed?.[name] ?? 0).toLocaleString("en"), text(shown)]));
}

function showCheckpoints(snapshot) {
  const found = [...(snapshot.checkpoints ?? [])].reverse();
  at("checkpoints-section").hidden = !found.length && !snapshot.checkpoints_said;
  at("checkpoints-said").textContent = snapshot.checkpoints_said ?? "";
  fill("checkpoints", ["checkpoint", "complete", "took", "wrote", "in all"], found.map(([number, when, took, wrote, all]) =>
    [number, `${since(snapshot.now - when)} ago`, `${short(1000 * took)} ms`, bytes(wrote), bytes(all)]));
  at("checkpoints").hidden = !found.length;
}

// Files are read when a count has changed, and then once a second at most.
function lookAtDead(units) {
  const count = units.reduce((sum, unit) => sum + (unit.dead_letters ?? 0), 0);
  if (!state.source || (count === state.deadCount && !state.deadAgain) || state.deadAsked) return;
  Object.assign(state, { deadCount: count, deadAgain: false });
  if (!count) return;
  state.deadAsked = true;
  const run = state.run;
  setTimeout(async () => {
    try {
      const answer = await fetch(`deadletters?run=${encodeURIComponent(run)}&token=${encodeURIComponent(token)}`);
      if (answer.status === 200 && run === state.run) showDead(await answer.json());
    } catch { /* the run has ended */ } finally { state.deadAsked = false; }
  }, 1000);
}

function showDead(said) {
  at("dead-section").hidden = !said.count;
  at("dead-do").hidden = !state.control || said.count === said.sent;
  const kinds = said.kinds.map(([unit, kind, count]) => `${short(count)} of ${unit}: ${kind}`).join(", ");
  at("dead-about").textContent = `${said.count} dead letters, ${said.sent} of them sent again. ${kinds}`;
  const button = (name, act) => { const made = element("button", { type: "button" }, name); made.addEventListener("click", act); return made; };
  fill("dead", ["at", text("unit"), text("key"), text("value"), text("error"), ""], said.newest.map((one) => {
    const acts = element("span", {});
    acts.append(button("Show", () => {
      at("dead-one").hidden = false;
      at("dead-one").textContent = `${one.unit}/${one.sub_unit}, ${one.hook}, key ${JSON.stringify(one.key)}`
        + `${one.event_time == null ? "" : `, event time ${one.event_time}`}\n${JSON.stringify(one.value)}\n${one.traceback}`;
    }));
    if (state.control && one.can_be_sent) acts.append(button("Send again", () => sendAgain([one.id])));
    const error = one.error.split("\n")[0];
    return [moment(one.time), text(`${one.unit}/${one.sub_unit}`), text(JSON.stringify(one.key)),
      { text: JSON.stringify(one.value)?.slice(0, 80), kind: "reason text" }, { text: error.slice(0, 160), kind: "reason text" }, { node: acts, text: "" }];
  }));
}

async function sendAgain(ids) {
  at("dead-said").textContent = "sent; waiting until what comes of them is durable …";
  try {
    const said = await ask({ do: "send_again", ids });
    const not = Object.entries(said.refused).map(([why, count]) => `, ${count} not: ${why}`).join("");
    at("dead-said").textContent = `${said.sent} sent again${not}`;
  } catch (error) {
    at("dead-said").textContent = error.message;
  }
  state.deadAgain = true;
}

function showUnit(unit) {
  if (!unit) return;
  at("h-unit").textContent = unit.name;
  const parts = unit.parts ?? [];
  at("about").textContent = unit.chained_to ? `A ${unit.kind}, chained to ${unit.chained_to}.`
    : `A ${unit.kind} with ${unit.sub_units} sub-unit${unit.sub_units === 1 ? "" : "s"}`
      + (parts.some((p) => p.ranges.length) ? "; the further an arc reaches out, the more tuples its sub-unit takes." : ".");
  at("ring").hidden = Boolean(state.snapshot.report);
  const loads = new Map(parts.map((p) => [p.number, state.loads.get(`${unit.name}/${p.number}`)?.rate ?? 0]));
  ring.draw(unit, loads);
  const share = (part) => part.ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  fill("parts", ["sub-unit", "tuples/s", "waiting", "busy", "keys", "of the ring", text("host")], parts.map((part) => {
    const load = state.loads.get(`${unit.name}/${part.number}`) ?? (state.snapshot.report ? { rate: NaN } : { rate: 0, busy: 0 });
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = colour(part.number);
    return [{ node: swatch, text: part.number }, short(load.rate), short(part.backlog), load.busy == null ? "" : `${Math.round(100 * Math.min(1, load.busy))} %`,
      short(part.elements), part.ranges.length ? `${(100 * share(part)).toFixed(1)} %` : "", text(part.host)];
  }));
  if (document.activeElement !== at("width")) at("width").value = unit.sub_units;
  at("h-ask").textContent = `State that ${unit.name} keeps`;
  at("ask").hidden = !state.source || !parts.some((part) => part.elements || part.ranges.length);
  if (state.asked !== unit.name) {
    state.asked = unit.name;
    at("states").replaceChildren();
    at("state-said").textContent = "";
  }
}

// The newest state of a key, or of some, from the process that has it.
async function showState() {
  const unit = state.chosen, key = at("key").value, prefix = at("prefix").value;
  at("state-said").textContent = "asked …";
  at("states").replaceChildren();
  try {
    const query = new URLSearchParams({ run: state.run, token, ...(key ? {} : { prefix }) });
    const answer = await fetch(`state/${[unit, ...(key ? [key] : [])].map(encodeURIComponent).join("/")}?${query}`);
    const said = await answer.json();
    if (unit !== state.chosen) return;
    if (!answer.ok) throw new Error(said.error ?? answer.statusText);
    at("state-said").textContent = key ? "as it is now" : `${said.found.length} of ${said.keys} keys, as they are now`;
    fill("states", ["key", text("state")], said.found.map((one) =>
      [typeof one.key === "string" ? one.key : JSON.stringify(one.key), { text: JSON.stringify(one.state), kind: "text state" }]));
  } catch (error) {
    at("state-said").textContent = error.message;
  }
}

function showTimeline() {
  const names = state.snapshot?.units.map((u) => u.name).filter((name) => state.windows.some((w) => w.units[name])) ?? [];
  if (!names.length) return;
  const times = state.windows.map((w) => w.t);
  const of = (field) => (name) => state.windows.map((w) => w.units[name]?.[field] ?? null);
  for (const [chart, field] of [["rate", 0], ["p99", Number(at("quantile").value)], ["width", 3]]) {
    const values = names.map(of(field));
    const known = values.some((each) => each.some((value) => value != null));
    at(`chart-${chart}`).parentElement.hidden = !known;
    if (known) charts[chart].draw(names, times, values);
  }
  at("what-if").hidden = !state.timed;
  if (state.tried) drawTried();
}

// What the simulator says of each policy, beside the widths as they were.
function showTried() {
  const tried = (state.tried ?? []).filter((each) => !each.error);
  at("tried-all").hidden = !tried.length;
  if (!tried.length) return;
  fill("tried", [{ text: "policy", kind: "text" }, "seconds of sub-units", "changes", "p99 ms", "waiting at the end"], tried.map((each) => {
    const box = element("input", { type: "checkbox", "data-policy": each.policy });
    box.checked = state.ticked.has(each.policy);
    box.addEventListener("change", () => { state.ticked[box.checked ? "add" : "delete"](each.policy); drawTried(); });
    const label = element("label", {});
    label.append(box, ` ${each.policy}`);
    return [{ node: label, text: "", kind: "text" }, short(each.sub_unit_seconds), each.changes, short(each.p99_ms), short(each.waiting)];
  }));
  drawTried();
}

function drawTried() {
  const tried = (state.tried ?? []).filter((each) => state.ticked.has(each.policy) && each.widths[state.chosen]);
  const times = state.windows.map((w) => w.t);
  const widths = (trace, until) => times.map((t) => t > until + 0.01 ? null : trace.findLast(([from]) => from <= t)?.[1] ?? null);
  charts.tried.draw(["as it was", ...tried.map((each) => each.policy)], times,
    [state.windows.map((w) => w.units[state.chosen]?.[3] ?? null), ...tried.map((each) => widths(each.widths[state.chosen], each.until))]);
}

async function tryPolicies() {
  at("try").disabled = true;
  at("tried-said").textContent = "computing …";
  try {
    const answer = await fetch(`whatif?run=${encodeURIComponent(state.run)}&token=${encodeURIComponent(token)}`);
    const said = await answer.json();
    if (said.error) throw new Error(said.error);
    Object.assign(state, { tried: said.tried, ticked: new Set(["none", "auto", "ds2"]) });
    at("tried-said").textContent = said.tried.filter((each) => each.error).map((each) => `${each.policy}: ${each.error}`).join("; ");
    showTried();
  } catch (error) {
    at("tried-said").textContent = error.message;
  } finally { at("try").disabled = false; }
}

function showChanges() {
  fill("changes", ["at", text("unit"), "sub-units", "keys moved", "held back", "took", text("by"), text("why")], [...state.changes].reverse().slice(0, 100).map((c) =>
    [since(c.t), text(c.unit), `${c.before} → ${c.after}`, short(c.moved_keys), `${short(1000 * c.held)} ms`, `${c.seconds.toFixed(2)} s`,
      text(c.policy), { text: c.dropped ? `${c.reason} (dropped: ${c.dropped})` : c.reason, kind: "reason text" }]));
}

function unitOf(mark) { return mark.replace(/\/[0-9]+$/, ""); }

function showLines() {
  const said = [...new Set(state.lines.map((line) => line.mark))].filter(Boolean).sort();
  const marks = [...new Set(said.flatMap((mark) => [unitOf(mark), mark]))]; // all sub-units of a unit, or one
  if (marks.join() !== [...at("of").options].slice(1).map((o) => o.value).join()) {
    const chosen = at("of").value;
    at("of").replaceChildren(element("option", { value: "" }, "all"), ...marks.map((m) => element("option", { value: m }, m)));
    at("of").value = marks.includes(chosen) ? chosen : "";
  }
  const log = at("log");
  const below = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
  const of = at("of").value;
  const shown = state.lines.filter((line) => !of || line.mark === of || unitOf(line.mark) === of);
  log.replaceChildren(...shown.flatMap((line) => [
    element("b", {}, `${moment(line.at)} ${line.mark} `), `${line.text}\n`]));
  if (below) log.scrollTop = log.scrollHeight;
}

function badge(text) {
  at("phase").textContent = text;
  at("phase").className = `badge ${text === "failed" ? "failed" : text.startsWith("ended") || text === "drained" ? "ended" : ""}`;
}

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

async function ask(request) {
  const answer = await fetch(`do?run=${encodeURIComponent(state.run)}`,
    { method: "POST", headers: { "Content-Type": "application/json", "X-Esault-Token": token }, body: JSON.stringify(request) });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error ?? answer.statusText);
  return said;
}

async function told(request, words) {
  at("said").textContent = "asked …";
  try {
    const said = await ask(request);
    at("said").textContent = said.unchanged ? "it has so many already" : words(said);
  } catch (error) {
    at("said").textContent = error.message;
  }
}

function open(run) {
  state.source?.close();
  Object.assign(state, { run: run.run, control: run.control, chosen: "", snapshot: null, past: [], rates: new Map(), loads: new Map(),
    windows: [], changes: [], lines: [], source: null, asked: "", deadCount: 0, deadAgain: false, deadAsked: false, tried: null, ticked: new Set(), timed: run.run === "this" });
  at("what-if").hidden = at("tried-all").hidden = true;
  at("tried-said").textContent = "";
  at("dead-section").hidden = at("dead-one").hidden = true;
  at("dead-said").textContent = "";
  for (const id of ["stop", "do"]) at(id).hidden = !run.control;
  for (const id of ["changes", "units", "parts", "hosts"]) at(id).replaceChildren();
  if (run.report) { openReport(run.report); return; }
  listen(run);
}

function listen(run) {
  const source = new EventSource(`events?run=${encodeURIComponent(run.run)}&token=${encodeURIComponent(token)}`);
  state.source = source;
  const on = (kind, then) => source.addEventListener(kind, (event) => then(JSON.parse(event.data)));
  // After a lost connection all that is kept comes again.
  source.addEventListener("open", () => Object.assign(state, { windows: [], changes: [], lines: [] }));
  on("snapshot", (snapshot) => { measure(snapshot); state.snapshot = snapshot; show(); showTimeline(); });
  on("window", (found) => { state.windows.push(...found); showTimeline();
    if (state.windows.length > MOST_WINDOWS) { source.close(); listen(run); } // what is kept there is thinned out
  });
  on("change", (found) => { state.changes.push(...found); showChanges(); });
  on("line", (found) => { state.lines.push(...found); state.lines.splice(0, state.lines.length - 500); showLines(); });
  on("end", () => { source.close(); state.source = null; badge("ended"); });
  source.addEventListener("error", () => { if (state.source === source) badge("not connected"); });
}

// A report has the same facts under other names.
function openReport(report) {
  const units = Object.entries(report.units).map(([name, unit]) => ({
    ...unit, name, kind: unit.kind ?? (unit.tuples_in ? "bolt" : "spout"), sub_units: unit.parallelism?.at(-1)?.[1] ?? 1,
    p50_ms: unit.latency_ms?.p50 ?? 0, p99_ms: unit.latency_ms?.p99 ?? 0, backlog: 0, edges: [], sinks: [], watermark: null,
    parts: Object.entries(unit.hosts ?? {}).filter(([number]) => !unit.processes || number in unit.processes).map(([number, host]) => ({ number: Number(number), host, ranges: [] })),
  }));
  const objectives = (report.objectives ?? []).map((o) =>
    `${o.objective}: ${o.kept ? "kept" : "missed"}, ${short(o.measured_ms)} ms measured, ${o.slow} of ${o.tuples} tuples took longer`);
  const scaling = (report.decisions ?? []).slice(-8).map((d) => `${d.t.toFixed(1)} s, ${d.unit}: ${d.what} (${d.policy}: ${d.reason}); ${d.outcome}`);
  scaling.unshift(...objectives);
  state.changes = (report.changes ?? []).map((c) => ({ ...c, before: c.from, after: c.to, held: c.held_back_ms / 1000, seconds: c.total_ms / 1000 }));
  const widths = units.map((unit) => [unit.name, unit.parallelism ?? []]);
  const times = [...new Set([...widths.flatMap(([, known]) => known.map(([t]) => t)), report.seconds])].sort((a, b) => a - b);
  state.windows = times.map((t) => ({ t, units: Object.fromEntries(widths.map(([name, known]) =>
    [name, [null, null, null, known.findLast(([from]) => from <= t)?.[1] ?? null, null]])) }));
  const kept = report.checkpoints;
  state.snapshot = { report: true, topology: report.topology, phase: report.ended, seconds: report.seconds, units, scaling, now: 0,
    failure: report.failure, roots_replayed: report.roots?.replayed, deaths: report.deaths, changes: state.changes.length,
    checkpoint: kept?.newest, restores: report.restores?.length,
    checkpoints_said: kept?.taken ? `${short(kept.taken)} taken, ${bytes(kept.bytes)}, the newest in ${short(1000 * kept.last_seconds)} ms: ${kept.directory}` : "" };
  show();
  showChanges();
  showTimeline();
}

async function begin() {
  const answer = await fetch(`runs?token=${encodeURIComponent(token)}`);
  const runs = await answer.json();
  if (!answer.ok) { badge("refused"); problem(runs.error); return; }
  const known = JSON.stringify(runs.map((r) => [r.run, r.control]));
  if (known !== begin.known) {
    begin.known = known;
    at("chooser").hidden = runs.length < 2;
    at("runs").replaceChildren(...runs.map((r) => element("option", { value: r.run }, `${r.topology} (${r.run})`)));
    begin.runs = runs;
    const still = runs.find((r) => r.run === state.run);
    if (still) at("runs").value = still.run;
    else if (runs.length && !state.source) open(runs[0]);
    else if (!runs.length && !state.snapshot) badge("no run yet");
  }
}

at("runs").addEventListener("change", () => open(begin.runs.find((r) => r.run === at("runs").value)));
at("of").addEventListener("change", showLines);
at("quantile").addEventListener("change", showTimeline);
at("state").addEventListener("submit", (event) => { event.preventDefault(); showState(); });
at("savepoint").addEventListener("click", () => {
  const name = prompt("Name of the savepoint:");
  if (name) told({ do: "savepoint", name }, (said) => `savepoint ${said.savepoint}: checkpoint ${said.checkpoint}, ${said.path}`);
});
at("try").addEventListener("click", tryPolicies);
at("send-all").addEventListener("click", () => sendAgain([]));
at("drain").addEventListener("click", () => told({ do: "stop" }, () => "it has ended"));
at("now").addEventListener("click", () => { if (confirm("End at once? What is in flight is not processed.")) told({ do: "stop", now: true }, () => "it has ended"); });
at("scale").addEventListener("submit", (event) => {
  event.preventDefault();
  told({ do: "scale", unit: state.chosen, n: Number(at("width").value) },
    (said) => `${said.before} → ${said.after} sub-units, ${short(said.moved_keys)} keys moved, none held longer than ${short(1000 * said.held)} ms`);
});
at("throttle").addEventListener("submit", (event) => {
  event.preventDefault();
  told({ do: "throttle", unit: state.chosen, rate: Number(at("rate").value), seconds: Number(at("for").value) }, () => "throttled");
});
addEventListener("resize", () => Object.values(charts).forEach((chart) => chart.fit()));
begin();
setInterval(() => begin().catch(() => {}), 3000);

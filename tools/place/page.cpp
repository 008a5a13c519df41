// The look as one HTML page: the JSON document, and a script that draws it. It loads nothing, and its policy
// forbids it to; what comes from the machine (names of files) gets into the page as text only.
#include "place/show.h"

namespace near::place {

namespace {

constexpr std::string_view head = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>near place</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #c62828; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.8rem 0 .4rem; }
p.note { margin: .2rem 0 .6rem; color: color-mix(in srgb, currentColor 75%, transparent); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .15rem .5rem; text-align: right; white-space: nowrap; }
th { background: var(--soft); font-weight: 600; } th.text, td.text { text-align: left; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
td.name { max-width: 24rem; overflow: hidden; text-overflow: ellipsis; }
td.home { outline: 2px solid currentColor; outline-offset: -2px; }
tr.chosen th { text-decoration: underline; }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
button:hover, button:focus-visible { text-decoration: underline; }
.controls label { margin-right: 1rem; }
.warning { border-left: 4px solid var(--bad); padding: .2rem .8rem; margin: .4rem 0; }
.warning { background: var(--soft); }
.warning div { opacity: .8; }
.bad { color: var(--bad); font-weight: 600; }
.strip { display: flex; width: 16rem; height: 1rem; border: 1px solid var(--line); }
.strip span { min-width: 1px; box-sizing: border-box; }
.strip span.wrong { border-top: .35rem solid var(--bad); min-width: 3px; }
.key { display: inline-block; width: .9rem; height: .9rem; vertical-align: -.1rem; }
.key { margin: 0 .3rem 0 1rem; }
</style>
</head>
<body>
<noscript>This page draws its tables with a script of its own; it needs no network.</noscript>
<main id="page"></main>
<script type="application/json" id="look">)page";

constexpr std::string_view tail = R"page(</script>
<script>
"use strict";
const look = JSON.parse(document.getElementById("look").textContent);
const nodes = look.nodes.map(each => each.node);
const most_ranges = 500; // of one mapping; the document has them all

// ---- elements and numbers ----

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick" || key === "onchange") element[key] = value;
    else if (key === "style") element.style.cssText = value;
    else if (value !== null) element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null)); // texts stay texts
  return element;
}
const cell = (content, kind = null) => make("td", {class: kind}, content);
const text_cell = content => cell(content, "text");

function table(id, titles, rows) {
  const heads = titles.map(([title, kind]) => make("th", {class: kind || null, scope: "col"}, title));
  return make("div", {class: "scroll"},
    make("table", {id}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}

const fixed = (value, digits) =>
  value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const mib = 1 << 20;
function amount(bytes) {
  if (!bytes) return "";
  return bytes < mib ? `${fixed(bytes / 1024, 0)} KiB` : `${fixed(bytes / mib, 1)} MiB`;
}
function percent(share) {
  if (!share.judged_bytes) return "";
  if (share.local_bytes === share.judged_bytes) return "100%";
  const rounded_down = Math.floor(1e4 * share.local_bytes / share.judged_bytes) / 100;
  return `${fixed(rounded_down, 2)}%`;
}
// "0-3,8"
function set_text(numbers) {
  const out = [];
  for (let i = 0; i < numbers.length; ++i) {
    const first = numbers[i];
    while (i + 1 < numbers.length && numbers[i + 1] === numbers[i] + 1) ++i;
    out.push(numbers[i] === first ? `${first}` : `${first}-${numbers[i]}`);
  }
  return out.join(",");
}
// Addresses have 64 bits, numbers 53.
const size = range => Number(BigInt(range.end) - BigInt(range.begin));
const hue = node => (210 + nodes.indexOf(node) * 360 / nodes.length) % 360;
const color = node => `hsl(${hue(node)} 60% 50%)`;

// ---- the data ----

const name_of = process => process.rank === null ? `process ${process.pid}` : `rank ${process.rank}`;
const parts_of = process => look.segment.filter(part => part.owner !== null && part.owner === process.rank);

function add(sum, bytes_on) {
  for (const [node, bytes] of Object.entries(bytes_on)) sum[node] = (sum[node] || 0) + bytes;
  return sum;
}
// Its own pages, and those of its region.
const all_of = process => [process, ...parts_of(process)].reduce((sum, each) => ({
  judged_bytes: sum.judged_bytes + each.judged_bytes, local_bytes: sum.local_bytes + each.local_bytes,
}), {judged_bytes: 0, local_bytes: 0});
const region_bytes = process => parts_of(process).reduce((sum, part) => add(sum, part.bytes_on), {});
function wrong_bytes(process) {
  const sum = {};
  for (const each of [...process.mappings, ...parts_of(process)])
    for (const range of each.ranges)
      if (range.wrong) add(sum, {[range.node]: size(range)});
  return sum;
}
const metrics = [
  {key: "memory", title: "all memory", hue: 210, of: process => process.bytes_on,
   note: "What each process maps, as numa_maps has it. A page that several map counts in each."},
  {key: "region", title: "its region of the segment", hue: 150, of: region_bytes,
   note: "Each page of the job's segment counts once, for its owner."},
  {key: "wrong", title: "in a wrong place", hue: 0, of: wrong_bytes,
   note: "Pages that belong to the rank and do not lie where they are meant to."},
].filter(each => each.key !== "region" || look.segment.length);

let metric = metrics[0];
const wanted = location.hash.match(/^#rank-([0-9]+)$/);
let chosen = wanted ? look.processes.find(each => each.rank === Number(wanted[1])) || null : null;

// ---- what is drawn ----

const node_titles = nodes.map(node => [`node ${node}`]);
const bytes_cells = bytes_on => nodes.map(node => cell(amount(bytes_on[node])));
const local_cell = share => cell(percent(share), share.local_bytes < share.judged_bytes ? "bad" : null);

function heat_cell(process, node, bytes, most) {
  const home = process.node === node;
  const strength = (0.12 + 0.68 * bytes / most).toFixed(3);
  return make("td", {
    class: home ? "home" : null, "data-node": node, "data-bytes": bytes,
    title: `${name_of(process)}, node ${node}: ${bytes} bytes${home ? "; its own node" : ""}`,
    style: bytes ? `background: hsl(${metric.hue} 80% 50% / ${strength})` : "",
  }, amount(bytes));
}
function heat_map() {
  const values = look.processes.map(process => metric.of(process));
  const most = Math.max(1, ...values.flatMap(value => Object.values(value)));
  const rows = look.processes.map((process, index) => {
    const button = make("button", {onclick: () => choose(process)}, name_of(process));
    const cells = process.problem !== null
      ? [make("td", {colspan: nodes.length + 1, class: "text"}, process.problem)]
      : [...nodes.map(node => heat_cell(process, node, values[index][node] || 0, most)),
         local_cell(all_of(process))];
    return make("tr", {class: process === chosen ? "chosen" : null, "data-rank": process.rank},
      make("th", {class: "text", scope: "row"}, button),
      make("td", {class: "text"}, set_text(process.processors),
        process.left_binding ? make("span", {class: "bad"}, " left its binding") : null),
      ...cells);
  });
  const titles = [["", "text"], ["processors", "text"], ...node_titles, ["local"]];
  return table("heat", titles, rows);
}

function strip(ranges) {
  if (!ranges.length) return "";
  const total = ranges.reduce((sum, range) => sum + size(range), 0);
  return make("div", {class: "strip"}, ...ranges.slice(0, most_ranges).map(range => make("span", {
    class: range.wrong ? "wrong" : null,
    title: `${range.begin}-${range.end}, node ${range.node}${range.wrong ? ", wrong" : ""}`,
    style: `flex: ${size(range) / total}; background: ${color(range.node)}`,
  })));
}
function range_table(ranges) {
  const rows = ranges.slice(0, most_ranges).map(range => make("tr", {"data-range": range.begin},
    cell(range.begin), cell(range.end), cell(`node ${range.node}`),
    cell(fixed(size(range) / look.page_bytes, 0)), cell(range.wrong ? "wrong" : "", "bad text")));
  const rest = ranges.length - rows.length;
  return make("div", {}, table(null, [["from"], ["to"], ["on"], ["pages"], ["", "text"]], rows),
    rest > 0 ? `and ${rest} more ranges; near place --json has them all` : null);
}
// A table whose rows open to show their ranges.
function drill_down(id, titles, items, cells_of) {
  const rows = items.map(item => {
    const [first, ...cells] = cells_of(item);
    let below = null;
    const toggle = () => {
      if (below !== null) {
        below.remove();
        below = null;
        return;
      }
      below = make("tr", {}, make("td", {colspan: titles.length, class: "text"}, range_table(item.ranges)));
      row.after(below);
    };
    const opens = make("button", {onclick: toggle, title: "its ranges"}, first);
    const row = make("tr", {}, text_cell(item.ranges.length ? opens : first), ...cells);
    return row; // toggle() needs it
  });
  return table(id, titles, rows);
}

const part_titles = [["part", "text"], ...node_titles, ["local"], ["foreign"], ["huge"],
  ["not in core"]];
const part_cells = part => [...bytes_cells(part.bytes_on), local_cell(part),
  cell(amount(part.foreign_bytes), part.foreign_bytes ? "bad" : null), cell(amount(part.huge_bytes)),
  cell(amount(part.not_in_core_bytes))];

const mapping_titles = [["kind", "text"], ["name", "text"], ["policy", "text"], ["page"], ...node_titles,
  ["local"], ["copy on write"], ["zeros"], ["huge"], ["not in core"], ["where", "text"]];
function mapping_cells(mapping) {
  const title = `${mapping.name} ${mapping.begin}-${mapping.end} ${mapping.permissions}`;
  return [mapping.kind, make("td", {class: "text name", title}, mapping.name || mapping.begin),
    text_cell(mapping.policy), cell(amount(mapping.page_bytes)), ...bytes_cells(mapping.bytes_on),
    local_cell(mapping), cell(amount(mapping.copy_on_write_bytes)), cell(amount(mapping.zero_bytes)),
    cell(amount(mapping.huge_bytes)), cell(amount(mapping.not_in_core_bytes)), cell(strip(mapping.ranges))];
}
function details(process) {
  const facts = [`process ${process.pid}`, process.program, process.phase, `threads: ${process.threads}`,
    `its memory is meant for ${process.node === null ? "no node" : `node ${process.node}`}`,
    process.planned_processor === null ? null
      : `bound by mpiexec to processors of which ${process.planned_processor} is the lowest`,
    process.processor === null ? null : `ran last on processor ${process.processor}`];
  const parts = parts_of(process);
  const region = parts.length ? [make("h3", {}, "Its region of the segment"),
    drill_down("parts", [...part_titles, ["where", "text"]], parts,
      part => [part.role, ...part_cells(part), cell(strip(part.ranges))])] : [];
  return make("section", {id: "details"}, make("h2", {}, name_of(process)),
    make("p", {class: "note"}, facts.filter(fact => fact).join("; ")), ...region,
    make("h3", {}, "Its mappings"),
    drill_down("mappings", mapping_titles, process.mappings, mapping_cells));
}
function roles() {
  const sums = new Map();
  const counts = ["judged_bytes", "local_bytes", "foreign_bytes", "huge_bytes", "not_in_core_bytes"];
  for (const part of look.segment) {
    const sum = sums.get(part.role) || {role: part.role, bytes_on: {}};
    add(sum.bytes_on, part.bytes_on);
    for (const count of counts) sum[count] = (sum[count] || 0) + part[count];
    sums.set(part.role, sum);
  }
  const rows = [...sums.values()].map(sum =>
    make("tr", {}, make("th", {class: "text", scope: "row"}, sum.role), ...part_cells(sum)));
  return table("roles", part_titles, rows);
}

// ---- what the ranks have sent ----

const most_lines = 32; // of the matrix; more ranks share lines, which open
const distances = ["core", "l3", "numa", "package", "machine"];
const paths = [...new Set(look.traffic.flatMap(flow => Object.keys(flow.paths)))];
const none = {messages: 0, bytes: 0};
let measure = "bytes", path = "all", pair = null;
const whole = {from: 0, to: 0, ranks: look.processes.length};
let area = whole; // of the matrix: the first sender, the first receiver, how many of each

const volume = bytes => bytes < 1024 ? `${bytes} B` : amount(bytes);
const shown = sent => measure === "bytes" ? volume(sent.bytes) : fixed(sent.messages, 0);
const by_path = flow => path === "all" ? flow : flow.paths[path] || none;
function redraw_traffic() {
  document.getElementById("traffic").replaceWith(traffic());
}
function radios(name, values, now, set) {
  return make("div", {class: "controls"}, ...values.map(([value, title]) => make("label", {},
    make("input", {type: "radio", name, value, checked: value === now ? "" : null,
      onchange: () => { set(value); redraw_traffic(); }}), ` ${title}`)));
}

function traffic_cell(from, to, step, sent, most) {
  if (!sent.messages) return cell("");
  const open = () => {
    if (step === 1) pair = {from, to};
    else area = {from, to, ranks: step};
    redraw_traffic();
  };
  const strength = (0.12 + 0.68 * sent[measure] / most).toFixed(3);
  return make("td", {
    "data-from": from, "data-to": to, "data-bytes": sent.bytes, "data-messages": sent.messages,
    title: `${ranks_text(from, step)} to ${ranks_text(to, step)}: ${sent.bytes} bytes, ${sent.messages} messages`,
    style: `background: hsl(270 80% 50% / ${strength})`,
  }, make("button", {onclick: open}, shown(sent)));
}
const ranks_text = (first, step) =>
  step === 1 ? `${first}` : `${first}-${Math.min(first + step, look.processes.length) - 1}`;
function matrix() {
  const step = Math.ceil(area.ranks / most_lines);
  const firsts = from => {
    const list = [];
    for (let rank = from; rank < Math.min(from + area.ranks, look.processes.length); rank += step)
      list.push(rank);
    return list;
  };
  const sums = new Map();
  for (const flow of look.traffic) {
    const from = flow.from - area.from, to = flow.to - area.to;
    if (Math.min(from, to) < 0 || Math.max(from, to) >= area.ranks) continue;
    const key = `${flow.from - from % step} ${flow.to - to % step}`, sum = sums.get(key) || none;
    const sent = by_path(flow);
    sums.set(key, {messages: sum.messages + sent.messages, bytes: sum.bytes + sent.bytes});
  }
  const most = [...sums.values()].reduce((so_far, sum) => Math.max(so_far, sum[measure]), 1);
  const receivers = firsts(area.to);
  const rows = firsts(area.from).map(from => make("tr", {},
    make("th", {scope: "row"}, ranks_text(from, step)),
    ...receivers.map(to => traffic_cell(from, to, step, sums.get(`${from} ${to}`) || none, most))));
  return table("matrix", [["from \\ to"], ...receivers.map(to => [ranks_text(to, step)])], rows);
}
function pair_details() {
  const flow = look.traffic.find(each => each.from === pair.from && each.to === pair.to);
  const rows = Object.entries(flow.paths).map(([name, sent]) => make("tr", {"data-path": name},
    make("th", {class: "text", scope: "row"}, name), cell(fixed(sent.messages, 0)), cell(fixed(sent.bytes, 0))));
  return make("div", {id: "pair"},
    make("h3", {}, `From rank ${flow.from} to rank ${flow.to}, distance ${flow.distance}`),
    table(null, [["path", "text"], ["messages"], ["bytes"]], rows));
}
function distance_table() {
  const sums = {};
  for (const flow of look.traffic) {
    const row = sums[flow.distance] ||= {};
    for (const [name, sent] of Object.entries(flow.paths)) {
      const sum = row[name] || none;
      row[name] = {messages: sum.messages + sent.messages, bytes: sum.bytes + sent.bytes};
    }
  }
  const rows = distances.filter(distance => sums[distance]).map(distance => make("tr", {"data-distance": distance},
    make("th", {class: "text", scope: "row"}, distance),
    ...paths.map(name => sums[distance][name] || none).map(sent => cell(sent.messages ? shown(sent) : ""))));
  return table("distances", [["distance", "text"], ...paths.map(name => [name])], rows);
}
function traffic() {
  if (!look.traffic.length) return make("section", {id: "traffic"}, make("p", {}, "No rank has sent a message."));
  const all_ranks = () => { area = whole; pair = null; redraw_traffic(); };
  return make("section", {id: "traffic"},
    radios("measure", [["bytes", "bytes"], ["messages", "messages"]], measure, value => { measure = value; }),
    radios("path", [["all", "all paths"], ...paths.map(name => [name, name])], path, value => { path = value; }),
    make("p", {class: "note"}, "A line is a sender, a column a receiver. ",
      area.ranks > most_lines ? "Ranks share lines; choose a cell to have them apart. "
        : "Choose a pair for what it sent by each path. ",
      area === whole ? null : make("button", {id: "all-ranks", onclick: all_ranks}, "Show all ranks.")),
    matrix(), pair ? pair_details() : null,
    make("h3", {}, "By distance: the smallest part of the machine that holds both ranks"), distance_table());
}

function title() {
  if (look.job === null) return `process ${look.launcher}: ${look.program}`;
  return `${look.job}: ${look.program}, ${look.processes.length} ranks`;
}
function node_legend(node) {
  const where = node.processors.length ? `processors ${set_text(node.processors)}` : "memory alone";
  return make("span", {}, make("span", {class: "key", style: `background: ${color(node.node)}`}),
    `node ${node.node}: ${where}, ${amount(node.free_bytes) || "nothing"} of ${amount(node.bytes)} free`);
}
function warnings() {
  if (look.warnings.length)
    return look.warnings.map(each =>
      make("div", {class: "warning"}, each.text, make("div", {}, each.advice)));
  const judged = [...look.processes, ...look.segment].some(each => each.judged_bytes);
  return [make("p", {}, judged ? "Every page lies where it belongs."
    : "Nothing is bound to one node, so no page is on a wrong one.")];
}
function metric_choice(each) {
  const choose_metric = () => { metric = each; draw(); };
  return make("label", {}, make("input", {type: "radio", name: "metric", value: each.key,
    checked: each === metric ? "" : null, onchange: choose_metric}), ` ${each.title}`);
}
function choose(process) {
  chosen = chosen === process ? null : process;
  draw();
  if (chosen) document.getElementById("details").scrollIntoView({block: "nearest"});
}
function draw() {
  document.title = `${title()} - near place`;
  document.getElementById("page").replaceChildren(
    make("h1", {}, title()),
    make("p", {class: "note"}, look.at, ...look.nodes.map(node_legend)),
    make("section", {id: "warnings"}, ...warnings()),
    make("h2", {}, "Ranks and nodes"),
    make("div", {class: "controls"}, ...metrics.map(metric_choice)),
    make("p", {class: "note"},
      `${metric.note} A frame marks the rank's own node. `,
      "Local: of the pages that are its own, or of its region. Choose a rank for its mappings and ranges."),
    heat_map(), ...(chosen ? [details(chosen)] : []),
    ...(look.job !== null ? [make("h2", {}, "Messages between the ranks"), traffic()] : []),
    ...(look.segment.length ? [make("h2", {}, "The segment, over all ranks"), roles()] : []));
}
draw();
</script>
</body>
</html>
)page";

} // namespace

std::string page_of(const Snapshot& snapshot) {
  std::string page(head);
  // A name of a file must not end the script; '<' stands in texts only, where it may be written so.
  for (char letter : json_of(snapshot, false))
    if (letter == '<')
      page += "\\u003c";
    else
      page += letter;
  return page.append(tail);
}

} // namespace near::place

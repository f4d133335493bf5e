/* The page of resvm rank: charts, plain SVG drawn once, and a searchable table, divided into pages. */

const KINDS = ["unlabeled", "known", "suspect"];
const PAGE_ROWS = 50;
const BOX = {width: 520, height: 400, left: 84, right: 26, top: 12, bottom: 48};
/* What the columns mean; shown when the pointer rests on a heading. */
const ABOUT = {
  "rank": "Position in this list, by decision value.",
  "id": "The row's name in the data, or its number.",
  "which": "known: a row of P; suspect: a row of P that looks mislabeled.",
  "decision value": "Value from the members that have not seen the row. Higher means more likely positive.",
  "votes": "Of the members that have not seen the row, the fraction that predict it positive.",
  "known positives": "P: the rows known to be positive. U: all other rows, of which some are positive.",
  "out of bag": "Scored only by members that were not trained on the row, so that no row is judged by its own label.",
  "members": "Number of members that have not seen the row and therefore scored it.",
  "rank, 95%": "Interval of the rank over resamples of the members. Sorted by width.",
  "expected positive so far": "Precision: the fraction of the rows from the first down to this one that is expected to be positive, with bounds. A what-if unless the fraction of U or tested rows are given.",
  "probability": "Estimated probability that this one row is positive; precision is about all rows down to it.",
  "expected false so far": "Expected number of false positives from the first row down to this one, with bounds.",
  "p-value": "Conformal p-value: fraction of known negatives that score at least as high as this row.",
  "q-value": "Smallest false discovery rate at which the row is listed (Benjamini-Hochberg).",
};

/* An element: make("p", {class: "quiet"}, "text", child). Text is never parsed as markup. */
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* Format a number for display: integers with thousands separators, others rounded to some digits. */
function shown(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toPrecision(digits) : value.toFixed(size >= 100 ? 1 : digits);
}

/* A figure with axes, ticks at round values, and a line below that reads the values at the pointer. */
function chart({label, hint, x: [x0, x1], y: [y0, y1], xLabel, yLabel, yText = short, read}) {
  const {width, height, left, right, top, bottom} = BOX;
  const px = (x) => left + (x - x0) / (x1 - x0) * (width - left - right);
  const py = (y) => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  for (const x of ticks(x0, x1)) {
    svg.append(draw("line", {class: "grid", x1: px(x), x2: px(x), y1: top, y2: height - bottom}),
      draw("text", {x: px(x), y: height - bottom + 18, "text-anchor": "middle"}, short(x)));
  }
  for (const y of ticks(y0, y1)) {
    svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: py(y), y2: py(y)}),
      draw("text", {x: left - 8, y: py(y) + 4, "text-anchor": "end"}, yText(y)));
  }
  svg.append(
    draw("text", {x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, xLabel),
    draw("text", {transform: `translate(20 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle"}, yLabel));
  const out = make("div", {class: "readout"}, hint);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = x0 + ((event.clientX - box.left) / box.width * width - left) / (width - left - right) * (x1 - x0);
    if (x >= x0 && x <= x1) out.textContent = read(x);
  });
  svg.addEventListener("pointerleave", () => { out.textContent = hint; });
  return {svg, px, py, element: make("figure", {}, svg, out)};
}

function short(value) {
  return Math.abs(value) >= 1e4 ? value.toExponential(0).replace("+", "") : String(+value.toPrecision(3));
}

function ticks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/* Histograms of P and of U over the same bins, each as fractions of its set, P upward and U downward. */
function histogram({edges, positive, other}) {
  const counts = [positive, other], names = ["known positives", "unlabeled"];
  const totals = counts.map((list) => list.reduce((a, b) => a + b, 0) || 1);
  const parts = counts.map((list, which) => list.map((count) => count / totals[which]));
  const most = Math.max(...parts.flat()) * 1.08, bins = edges.length - 1;
  const width = (edges[bins] - edges[0]) / bins;
  const {svg, px, py, element} = chart({label: "out-of-bag values of P and U", x: [edges[0], edges[bins]], y: [-most, most],
    xLabel: "out-of-bag decision value", yLabel: "fraction: P up, U down", yText: (part) => short(Math.abs(part)),
    hint: "The outermost bins also hold all values beyond the axis.",
    read: (x) => {
      const bin = Math.min(bins - 1, Math.floor((x - edges[0]) / width));
      return `${shown(edges[bin], 3)} to ${shown(edges[bin + 1], 3)}: ` +
        names.map((name, which) => `${shown(counts[which][bin])} ${name}`).join(", ");
    }});
  parts.forEach((list, which) => list.forEach((part, bin) => {
    svg.append(draw("rect", {class: `s${which}`, x: px(edges[bin]) + .5, y: which ? py(0) : py(part),
      width: px(edges[1]) - px(edges[0]) - 1, height: Math.abs(py(part) - py(0))}));
  }));
  svg.append(draw("line", {class: "frame", x1: BOX.left, x2: BOX.width - BOX.right, y1: py(0), y2: py(0)}));
  const keys = names.map((name, which) => make("li", {}, draw("svg", {viewBox: "0 0 32 10", "aria-hidden": "true"},
    draw("rect", {class: `s${which}`, width: 32, height: 10})), name));
  return make("section", {}, make("h2", {}, "Out-of-bag values"), make("ul", {class: "legend"}, ...keys), element);
}

/* How many known positives are found by how far down the list, scored as if they were unlabeled. */
function recovery({rank, share}) {
  const found = rank.map((one) => Math.min(1, one / DATA.n_unl));
  const depth = make("select", {id: "depth", "aria-label": "how far down"},
    ...[["1", "all of U"], ["0.1", "the first 10%"], ["0.01", "the first 1%"]].map(([value, label]) => make("option", {value}, label)));
  const place = make("div", {});
  const show = () => {
    const end = Number(depth.value);
    const at = (x) => { // the fraction found at this depth; the curve is a step function
      let low = 0, high = found.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (found[middle] <= x) low = middle + 1; else high = middle;
      }
      return low ? share[low - 1] : 0;
    };
    const {svg, px, py, element} = chart({label: "known positives found by fraction of U screened", x: [0, end], y: [0, 1],
      xLabel: "fraction of U screened", yLabel: "known positives found", hint: "Point at the chart to read it.",
      read: (x) => `the first ${shown(Math.round(x * DATA.n_unl))} rows (${shown(100 * x, 2)}%) contain ` +
        `${shown(100 * at(x), 1)}% of the known positives, scored as if they were unlabeled`});
    let path = `M${px(0)} ${py(0)}`;
    found.forEach((x, i) => { if (x <= end) path += `H${px(x).toFixed(1)}V${py(share[i]).toFixed(1)}`; });
    svg.append(
      draw("rect", {class: "frame", x: px(0), y: py(1), width: px(end) - px(0), height: py(0) - py(1)}),
      draw("line", {class: "chance", x1: px(0), y1: py(0), x2: px(end), y2: py(end)}),
      draw("path", {class: "series", d: `${path}H${px(end)}`}));
    place.replaceChildren(element);
  };
  depth.addEventListener("change", show);
  show();
  return make("section", {}, make("h2", {}, "Positives recovered"), depth, place);
}

/* How many of the top rows are positive if this fraction of U is: a bar and its bounds per case. */
function whatIf(cases) {
  const bar = (length, value, low, high) => draw("svg", {class: "bar", viewBox: `0 0 ${length} 10`, preserveAspectRatio: "none", "aria-hidden": "true"},
    draw("rect", {class: "track", width: length, height: 10}), draw("rect", {class: "s0", width: value, height: 10}),
    draw("rect", {class: "bounds", x: low, y: 3.5, width: Math.max(high - low, length / 100), height: 3}));
  const fractions = [...new Set(cases.map(([b]) => b))], lengths = [...new Set(cases.map(([, length]) => length))];
  return make("table", {class: "cases"},
    make("thead", {}, make("tr", {}, ...["assumed in U", ...lengths.map((length) => `of the top ${shown(length)}`)].map((head) => make("th", {scope: "col"}, head)))),
    make("tbody", {}, ...fractions.map((fraction) => make("tr", {}, make("th", {scope: "row"}, `${shown(100 * fraction, 0)}%`),
      ...cases.filter(([b]) => b === fraction).map(([, length, value, low, high]) => make("td", {},
        `${shown(value, 1)} `, make("span", {class: "quiet"}, `(${shown(low)} to ${shown(high)})`), bar(length, value, low, high)))))));
}

/* A clickable id that shows the terms of its row's value. */
function reasonsOf(id, {sums, lists}) {
  const signed = (amount) => (amount < 0 ? "−" : "+") + shown(Math.abs(amount));
  return make("details", {class: "why"}, make("summary", {}, id),
    make("p", {}, sums.map(([name, amount]) => `${name} ${signed(amount)}`).join(", ")),
    ...lists.flatMap(([name, parts]) => [make("p", {class: "quiet"}, name),
      make("ul", {}, ...parts.map(([part, amount]) => make("li", {}, `${part} (${signed(amount)})`)))]));
}

const explained = new Set(["known positives", "out of bag"]); // terms that the page uses

/* The columns of a list: heading, value to sort by, text. */
function columnsOf(list, kind, why) {
  const extra = list.extra_columns, ranks = list.rank || list.id.map((_, i) => i + 1);
  const columns = [
    {head: "rank", value: (i) => ranks[i], cell: (i) => shown(ranks[i])},
    {head: "id", text: true, value: (i) => list.id[i], cell: (i) => why[i] ? reasonsOf(list.id[i], why[i]) : list.id[i]},
    {head: "decision value", value: (i) => list.value[i], cell: (i) => shown(list.value[i])},
    {head: "votes", value: (i) => list.votes[i], cell: (i) => list.votes[i] === null ? "–" : list.votes[i].toFixed(3)},
    {head: "members", value: (i) => list.members[i], cell: (i) => shown(list.members[i])},
    {head: "rank, 95%", value: (i) => list.members[i] ? list.high[i] - list.low[i] : null,
      cell: (i) => list.members[i] ? `${shown(list.low[i])} to ${shown(list.high[i])}` : "–"}];
  const bounded = (head, name, factor, unit, digits) => {
    const value = extra[name], low = extra[`${name}_low`], high = extra[`${name}_high`];
    if (!value) return;
    const text = (x) => shown(factor * x, digits);
    columns.push({head, value: (i) => value[i], cell: (i) => value[i] === null ? list.members[i] ? "unknown" : "–" :
      text(value[i]) + unit + (low[i] === null ? "" : ` (${text(low[i])} to ${text(high[i])})`)});
  };
  bounded("expected positive so far", "precision", 100, "%", 0);
  const chance = extra.probability;
  if (chance) {
    columns.push({head: "probability", value: (i) => chance[i],
      cell: (i) => chance[i] === null ? list.members[i] ? "unknown" : "–" : chance[i].toFixed(2)});
  }
  bounded("expected false so far", "expected_false", 1, "", 1);
  for (const [name, head] of [["p_value", "p-value"], ["q_value", "q-value"]]) {
    const value = extra[name];
    if (value) columns.push({head, value: (i) => value[i], cell: (i) => shown(value[i], 4)});
  }
  for (const {head} of columns) explained.add(head);
  const own = Object.entries(list.own).map(([head, cells]) => {
    const text = cells.some((cell) => Number.isNaN(Number(cell))), number = (i) => cells[i] === "" ? null : Number(cells[i]);
    return {head, text, value: text ? (i) => cells[i] : number, cell: (i) => cells[i]};
  });
  columns.splice(3, 0, ...own);
  if (list.kind) explained.add("which");
  if (list.kind) columns.splice(2, 0, {head: "which", value: (i) => kind[i], cell: (i) => KINDS[kind[i]]});
  return columns;
}

/* A table of a list given as columns; only the rows on the current page are rendered. */
function listTable(list, name, why = []) {
  const size = list.id.length, searched = [list.id, ...Object.values(list.own)], kind = list.kind || new Array(size).fill(0);
  const columns = columnsOf(list, kind, why);
  const search = make("input", {type: "search", id: `${name}-search`, placeholder: "part of an id or a text", spellcheck: "false"});
  const which = make("select", {id: `${name}-which`, "aria-label": "which rows"}, make("option", {value: ""}, "all rows"),
    ...KINDS.map((one, k) => [one, k]).filter(([, k]) => kind.includes(k)).map(([one, k]) => make("option", {value: k}, one)));
  const place = make("output", {id: `${name}-place`});
  const button = (label, action) => {
    const made = make("button", {type: "button", ...(ABOUT[label] ? {title: ABOUT[label]} : {})}, label);
    made.addEventListener("click", action);
    return made;
  };
  const last = () => Math.max(0, Math.ceil(order.length / PAGE_ROWS) - 1);
  const turn = (to) => { at = Math.min(last(), Math.max(0, to)); render(); };
  const turns = [button("First", () => turn(0)), button("Previous", () => turn(at - 1)),
    button("Next", () => turn(at + 1)), button("Last", () => turn(last()))];

  let order = Array.from({length: size}, (_, i) => i), at = 0, by = 0, upward = true;
  const heads = columns.map((column, c) =>
    make("th", {scope: "col", "aria-sort": c ? "none" : "ascending", ...(column.text ? {class: "name"} : {})}, button(column.head, () => {
      upward = by === c ? !upward : c === 0 || Boolean(column.text);
      by = c;
      arrange();
    })));
  const body = make("tbody", {});
  function arrange() {
    const wanted = search.value.trim().toLowerCase(), only = which.value;
    order = [];
    for (let i = 0; i < size; i++) {
      if ((only === "" || kind[i] === Number(only)) && (!wanted || searched.some((cells) => cells[i].toLowerCase().includes(wanted)))) order.push(i);
    }
    if (by || !upward) {
      const keys = columns[by].value, sign = upward ? 1 : -1;
      const text = columns[by].text ? new Intl.Collator("en", {numeric: true}) : null;
      order.sort((i, j) => {
        const a = keys(i), b = keys(j);
        if (a === null || b === null) return (a === null) - (b === null) || i - j; // rows without a value come last
        return sign * (text ? text.compare(a, b) : a - b) || i - j;
      });
    }
    heads.forEach((head, c) => head.setAttribute("aria-sort", c === by ? (upward ? "ascending" : "descending") : "none"));
    turn(0);
  }
  function render() {
    const from = at * PAGE_ROWS, rows = order.slice(from, from + PAGE_ROWS);
    body.replaceChildren(...rows.map((i) => make("tr", kind[i] === 2 ? {class: "suspect"} : {},
      ...columns.map((column) => make("td", column.text ? {class: "name", ...(column.head === "id" ? {} : {title: column.cell(i)})} : {}, column.cell(i))))));
    place.textContent = rows.length
      ? `${shown(from + 1)} to ${shown(from + rows.length)} of ${shown(order.length)}` : "no row matches";
    turns.forEach((one, number) => { one.disabled = number < 2 ? at === 0 : at >= last(); });
  }
  let waiting;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(arrange, size > 5000 ? 150 : 0); });
  which.addEventListener("change", arrange);
  render();
  return make("div", {id: name, class: "listing"},
    make("div", {class: "controls"}, make("label", {for: `${name}-search`}, "Search"), search,
      ...(list.kind && new Set(kind).size > 1 ? [which] : []), place),
    make("div", {class: "scroll", tabindex: "0"},
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)),
    make("div", {class: "controls"}, ...turns));
}

const main = document.getElementById("page");
const section = (title, ...children) => main.append(make("section", {}, make("h2", {}, title), ...children));
main.append(make("h1", {}, DATA.heading));
if (DATA.command) main.append(make("p", {class: "quiet"}, make("code", {id: "command"}, DATA.command)));
for (const text of DATA.warnings) main.append(make("p", {class: "warning"}, make("strong", {}, "Warning: "), text));
main.append(make("dl", {class: "summary"},
  ...DATA.summary.flatMap(([name, text]) => [make("dt", {class: "quiet"}, name), make("dd", {}, text)])));
main.append(make("div", {class: "pair"},
  ...(DATA.histogram ? [histogram(DATA.histogram)] : []), ...(DATA.recovery ? [recovery(DATA.recovery)] : [])));
if (DATA.cases.length) {
  section("Expected positives", make("p", {class: "quiet"}, "How many of the top rows are positive depends on how many rows of U are, " +
    "which values do not tell. Each row assumes a fraction. Bar: expected number; line in it: bounds. All of this assumes that P is a random sample of the positives."),
    make("div", {class: "scroll", tabindex: "0"}, whatIf(DATA.cases)));
}
section(DATA.audit ? "Known positives" : "Rows, best first", listTable(DATA.list, "list", DATA.why));
if (DATA.known) section("Known positives, most suspicious first", listTable(DATA.known, "known"));
if (DATA.importance.length) {
  section("Features that matter",
    make("p", {class: "quiet"}, "How much the members' out-of-bag ROC AUC of P against U drops when a feature is permuted, " +
      "with the standard deviation over members. Correlated features are permuted together."),
    make("div", {class: "scroll", tabindex: "0", id: "importance"}, make("table", {},
      make("thead", {}, make("tr", {}, ...["feature", "importance", "deviation"].map((head) => make("th", {scope: "col"}, head)))),
      make("tbody", {}, ...DATA.importance.map(([name, importance, deviation]) => make("tr", {},
        make("td", {class: "name"}, name), make("td", {}, shown(importance, 4)), make("td", {}, shown(deviation, 4))))))));
}
section("Terms", make("dl", {class: "summary", id: "terms"}, ...Object.entries(ABOUT).filter(([term]) => explained.has(term))
  .flatMap(([term, text]) => [make("dt", {class: "quiet"}, term), make("dd", {}, text)])));
section("How this page was made", ...DATA.notes.map((text) => make("p", {class: "quiet note"}, `Note: ${text}`)), ...DATA.made.map((text) => make("p", {class: "quiet"}, text)));

/* The page of resvm rank: a searchable table, page by page, and charts. */

const main = document.getElementById("page");
const KINDS = ["unlabeled", "known", "suspect"];
const PAGE_ROWS = 50;
/* What the columns mean; shown when the pointer rests on a heading. */
const ABOUT = {
  "rank": "Position in this list, by decision value.",
  "id": "The row's name in the data, or its number.",
  "which": "unlabeled: a row of U; known: a row of P; suspect: a row of P that looks mislabeled.",
  "decision value": "Value from the members that have not seen the row. Higher means more likely positive.",
  "votes": "Fraction of these members that predict the row positive.",
  "members": "Number of members that have not seen the row and therefore scored it.",
  "rank, 95 %": "Interval of the rank over resamples of the members. Sorted by width.",
  "expected positive so far": "Expected precision of the list from the first row down to this one, with bounds.",
  "probability": "Chance that this row is positive.",
  "expected false so far": "Expected number of false positives from the first row down to this one, with bounds.",
  "p-value": "Conformal p-value: fraction of trusted negatives with at least this value.",
  "chosen": "Why the row was chosen for testing: its rank, or disagreement among members.",
  "q-value": "Smallest false discovery rate at which the row is listed (Benjamini-Hochberg).",
};

main.append(make("h1", {}, DATA.heading));
if (DATA.command) main.append(make("p", {class: "quiet"}, make("code", {id: "command"}, DATA.command)));
for (const text of DATA.notes) main.append(make("p", {class: "warning"}, text));
main.append(make("dl", {class: "summary"},
  ...DATA.summary.flatMap(([name, text]) => [make("dt", {class: "quiet"}, name), make("dd", {}, text)])));

/* A clickable id that shows the terms of its row's value. */
function reasonsOf(id, {sums, lists}) {
  const signed = (amount) => (amount < 0 ? "−" : "+") + shown(Math.abs(amount));
  return make("details", {class: "why"}, make("summary", {}, id),
    make("p", {}, sums.map(([name, amount]) => `${name} ${signed(amount)}`).join(", ")),
    ...lists.flatMap(([name, parts]) => [make("p", {class: "quiet"}, name),
      make("ul", {}, ...parts.map(([part, amount]) => make("li", {}, `${part} (${signed(amount)})`)))]));
}

/* A table of a list given as columns; only the rows in view are rendered. */
function listTable(list, name, why = []) {
  const size = list.id.length;
  const kind = list.kind || new Array(size).fill(0);
  const columns = [
    {head: "rank", value: (i) => list.rank ? list.rank[i] : i + 1, cell: (i) => shown(list.rank ? list.rank[i] : i + 1)},
    {head: "id", value: (i) => list.id[i], cell: (i) => why[i] ? reasonsOf(list.id[i], why[i]) : list.id[i]},
    {head: "decision value", value: (i) => list.value[i], cell: (i) => shown(list.value[i])},
    {head: "votes", value: (i) => list.votes[i], cell: (i) => list.votes[i] === null ? "–" : list.votes[i].toFixed(3)},
    {head: "members", value: (i) => list.members[i], cell: (i) => shown(list.members[i])}];
  if (list.low) {
    columns.push({head: "rank, 95 %", value: (i) => list.members[i] ? list.high[i] - list.low[i] : null,
      cell: (i) => list.members[i] ? `${shown(list.low[i])} to ${shown(list.high[i])}` : "–"});
  }
  const bounded = (head, name, factor, unit, digits) => {
    const value = list.further[name], low = list.further[`${name}_low`], high = list.further[`${name}_high`];
    if (!value) return;
    const text = (x) => shown(factor * x, digits);
    columns.push({head, value: (i) => value[i], cell: (i) => value[i] === null ? list.members[i] ? "unknown" : "–" :
      text(value[i]) + unit + (low[i] === null ? "" : ` (${text(low[i])} to ${text(high[i])})`)});
  };
  bounded("expected positive so far", "precision", 100, " %", 0);
  const chance = list.further.probability;
  if (chance) {
    columns.push({head: "probability", value: (i) => chance[i],
      cell: (i) => chance[i] === null ? kind[i] || !list.members[i] ? "–" : "unknown" : chance[i].toFixed(2)});
  }
  bounded("expected false so far", "expected_false", 1, "", 1);
  for (const [name, head] of [["p_value", "p-value"], ["q_value", "q-value"]]) {
    const value = list.further[name];
    if (value) columns.push({head, value: (i) => value[i], cell: (i) => shown(value[i], 4)});
  }
  const explored = list.further.explored;
  if (explored) columns.push({head: "chosen", value: (i) => explored[i], cell: (i) => explored[i] ? "disagreement" : "rank"});
  if (list.kind) columns.splice(2, 0, {head: "which", value: (i) => kind[i], cell: (i) => KINDS[kind[i]]});

  const search = make("input", {type: "search", id: `${name}-search`, placeholder: "part of an id", spellcheck: "false"});
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
  const heads = columns.map((column, c) => {
    const head = make("th", {scope: "col", "aria-sort": c ? "none" : "ascending"}, button(column.head, () => {
      upward = by === c ? !upward : c < 2;
      by = c;
      arrange();
    }));
    return head;
  });
  const body = make("tbody", {});
  function arrange() {
    const wanted = search.value.trim().toLowerCase(), only = which.value;
    order = [];
    for (let i = 0; i < size; i++) {
      if ((only === "" || kind[i] === Number(only)) && (!wanted || list.id[i].toLowerCase().includes(wanted))) order.push(i);
    }
    if (by || !upward) {
      const keys = columns[by].value, sign = upward ? 1 : -1;
      const text = by === 1 ? new Intl.Collator("en", {numeric: true}) : null;
      order.sort((i, j) => {
        const a = keys(i), b = keys(j);
        if (a === null || b === null) return (a === null) - (b === null) || i - j; // rows without a value come last
        return sign * (text ? text.compare(a, b) : a - b) || i - j;
      });
    }
    heads.forEach((head, c) => head.setAttribute("aria-sort", c === by ? (upward ? "ascending" : "descending") : "none"));
    at = 0;
    render();
  }
  function render() {
    const from = at * PAGE_ROWS, rows = order.slice(from, from + PAGE_ROWS);
    body.replaceChildren(...rows.map((i) => make("tr", kind[i] === 2 ? {class: "suspect"} : {},
      ...columns.map((column, c) => make("td", c === 1 ? {class: "name"} : {}, column.cell(i))))));
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

/* Charts: the values of P and U, and how early known positives are found. */
const charts = [];
if (DATA.histogram) {
  const spread = mirrorChart({label: "out-of-bag values of P and U", edges: DATA.histogram.edges,
    counts: [DATA.histogram.positive, DATA.histogram.other], names: ["known positives", "unlabeled"],
    xLabel: "out-of-bag decision value", yLabel: "fraction: P up, U down",
    hint: spreadHint(DATA.histogram.edges)});
  charts.push(make("section", {}, make("h2", {}, "Out-of-bag values"), legend(["known positives", "unlabeled"], true), spread.element));
}
if (DATA.recovery) {
  const {rank, share} = DATA.recovery;
  const found = rank.map((one) => Math.min(1, one / DATA.n_unl));
  const whole = {x: [0, ...found.flatMap((x) => [x, x])], y: [0, ...share.flatMap((y, i) => [i ? share[i - 1] : 0, y])]};
  const depth = make("select", {id: "depth", "aria-label": "how far down"},
    ...[["1", "all of U"], ["0.1", "the first 10 %"], ["0.01", "the first 1 %"]].map(([value, label]) => make("option", {value}, label)));
  const place = make("div", {});
  const show = () => {
    const end = Number(depth.value), inside = whole.x.filter((x) => x <= end).length;
    const x = whole.x.slice(0, inside), y = whole.y.slice(0, inside);
    if (x[x.length - 1] < end) { x.push(end); y.push(y[y.length - 1]); }
    place.replaceChildren(lineChart({x: [0, end], y: [0, 1], label: "known positives found by fraction of U screened",
      xLabel: "fraction of U screened", yLabel: "known positives found",
      series: [{x, y}], chance: [[0, 0], [end, end]], hint: "Point at the chart to read it.",
      read: (_, i) => `the first ${shown(Math.round(x[i] * DATA.n_unl))} rows (${shown(100 * x[i], 2)} %) contain ` +
        `${shown(100 * y[x.lastIndexOf(x[i])], 1)} % of the known positives, scored as if they were unlabeled`}).element);
  };
  depth.addEventListener("change", show);
  show();
  charts.push(make("section", {}, make("h2", {}, "Positives recovered"), depth, place));
}
main.append(make("div", {class: "pair"}, ...charts));
main.append(make("section", {}, make("h2", {}, DATA.audit ? "Known positives" : "Rows, best first"), listTable(DATA.list, "list", DATA.why)));
if (DATA.known) {
  main.append(make("section", {}, make("h2", {}, "Known positives, most suspicious first"), listTable(DATA.known, "known")));
}
if (DATA.importance.length) {
  main.append(make("section", {id: "importance"}, make("h2", {}, "Features that matter"),
    make("p", {class: "quiet"}, "How much the members' out-of-bag ROC AUC of P against U drops when a feature is permuted, " +
      "with the standard deviation over members. Correlated features are permuted together."),
    make("div", {class: "scroll", tabindex: "0"}, make("table", {},
      make("thead", {}, make("tr", {}, ...["feature", "importance", "deviation"].map((head) => make("th", {scope: "col"}, head)))),
      make("tbody", {}, ...DATA.importance.map(([name, importance, deviation]) => make("tr", {},
        make("td", {class: "name"}, name), make("td", {}, shown(importance, 4)), make("td", {}, shown(deviation, 4)))))))));
}
main.append(make("section", {}, make("h2", {}, "How this page was made"),
  ...DATA.made.map((text) => make("p", {class: "quiet"}, text))));

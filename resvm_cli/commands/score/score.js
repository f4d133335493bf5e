/* The page of resvm score: figures, curves, an adjustable threshold, and how the page was made. */

const files = DATA.files, pu = DATA.pu, several = files.length > 1;
const other = pu ? "unlabeled" : "negative";
const corrected = pu && files[0].corrected !== null;
const page = document.getElementById("page");
const names = files.map((one) => one.file);

function interval(one, name) {
  const low = one.figures[`${name}_low`], high = one.figures[`${name}_high`];
  return low === undefined ? "" : `${shown(low)} to ${shown(high)}`;
}

page.append(
  make("h1", {}, several ? `${files.length} files against ${DATA.labels}` : `${names[0]} against ${DATA.labels}`),
  make("p", {class: "quiet"}, `${shown(files[0].n_pos)} positive, ${shown(files[0].n_other)} ${other} rows` +
    (DATA.bootstrap ? `; 95 % intervals from ${shown(DATA.bootstrap)} bootstrap replicates` : "")));
if (DATA.command) page.append(make("p", {class: "quiet"}, make("code", {id: "command"}, DATA.command)));
for (const text of DATA.warnings) page.append(make("p", {class: "warning"}, text));
for (const one of files) {
  if (one.degenerate) page.append(make("p", {class: "warning"}, `${one.file}: degenerate: ${one.degenerate}`));
}
if (!several) {
  page.append(make("div", {class: "tiles"}, ...DATA.tiles.filter(([name]) => name in files[0].figures).map(([name, label]) =>
    make("div", {class: "tile"}, make("span", {}, label), make("b", {}, shown(files[0].figures[name], 3)),
      make("span", {}, interval(files[0], name))))));
}

/* The slider's points for each file; at index 0, nothing is predicted positive. */
const rates = files.map((one) => {
  const recall = one.tp.map((tp) => tp / one.n_pos), fall = one.fp.map((fp) => fp / one.n_other);
  const precision = one.tp.map((tp, i) => tp / (tp + one.fp[i]));
  const depth = one.tp.map((tp, i) => (tp + one.fp[i]) / (one.n_pos + one.n_other));
  return {recall, fall, precision, depth};
});

/* Curves start at recall 0, with the precision at the first threshold. */
const drawn = files.map((one, f) => one.corrected
  ? {recall: one.corrected.tpr, fall: one.corrected.fpr, precision: one.corrected.precision, t: one.corrected.thresholds}
  : {...rates[f], t: one.thresholds});
const at = (list, i) => list[Math.min(Math.max(i - 1, 0), list.length - 1)];
const unit = {x: [0, 1], y: [0, 1]};
const banded = (low, high) => files.flatMap((one, series) => one.band
  ? [{series, x: one.band.grid, low: one.band[low], high: one.band[high]}] : []);
const describe = (f, i) => `${several ? names[f] + ": " : ""}recall ${shown(at(drawn[f].recall, i), 3)}, ` +
  `precision ${shown(at(drawn[f].precision, i), 3)}, ${pu && !corrected ? "fraction of U predicted positive" : "false-positive rate"} ` +
  `${shown(at(drawn[f].fall, i), 3)}, at threshold ${shown(at(drawn[f].t, i))}`;
const chance = DATA.chance;
const pr = lineChart({...unit, label: "precision against recall", xLabel: "recall",
  yLabel: pu && !corrected ? "known positives among predicted positives" : "precision",
  series: drawn.map((one) => ({x: [0, ...one.recall], y: [one.precision[0], ...one.precision], step: true})),
  bands: banded("precision_low", "precision_high"), chance: [[0, chance], [1, chance]],
  hint: "Point at the chart to read values.", read: describe});
const roc = lineChart({...unit, label: "ROC curve", xLabel: pu && !corrected ? "fraction of U predicted positive" : "false-positive rate",
  yLabel: "recall",
  series: drawn.map((one) => ({x: [0, ...one.fall, 1], y: [0, ...one.recall, 1]})),
  bands: banded("tpr_low", "tpr_high"), chance: [[0, 0], [1, 1]],
  hint: "Point at the chart to read values.", read: describe});
const listed = (name) => legend(files.map((one) =>
  one.figures[name] === undefined ? one.file : `${one.file}: ${shown(one.figures[name], 3)}`));
page.append(make("div", {class: "pair"},
  make("section", {}, make("h2", {}, corrected ? "Precision and recall, corrected" : pu ? "Known positives recovered" : "Precision and recall"),
    listed(corrected ? "corrected_average_precision" : "average_precision"), pr.element),
  make("section", {}, make("h2", {}, corrected ? "ROC, corrected" : "ROC"),
    listed(corrected ? "corrected_roc_auc" : pu ? "roc_auc_pu" : "roc_auc"), roc.element)));

/* The threshold. */
const slider = make("input", {type: "range", id: "threshold", min: 0, step: 1, "aria-describedby": "predicted"});
const predicted = make("output", {id: "predicted", for: "threshold"});
const chooser = make("select", {id: "file", "aria-label": "file"}, ...names.map((name, f) => make("option", {value: f}, name)));
const live = {};
const cell = (name, label) => {
  live[name] = make("output", {id: `live-${name}`, for: "threshold"});
  return make("div", {}, make("span", {}, label), live[name]);
};
const cells = pu
  ? [cell("tp", "known positives predicted positive"), cell("fp", "unlabeled rows predicted positive"), cell("recall", "recall"),
    cell("fraction", "fraction predicted positive"), cell("pu_score", "pu_score"),
    ...(corrected ? [cell("true_precision", "precision, corrected"), cell("true_recall", "recall, corrected")] : [])]
  : [cell("tp", "true positives"), cell("fp", "false positives"), cell("fn", "false negatives"), cell("tn", "true negatives"),
    cell("precision", "precision"), cell("recall", "recall"), cell("f1", "F1"), cell("mcc", "MCC")];
page.append(make("section", {class: "threshold"}, make("h2", {}, "Move the threshold"),
  ...(several ? [chooser] : []),
  make("label", {for: "threshold"}, "Predicted positive: ", predicted), slider,
  make("div", {class: "live"}, ...cells)));

const spread = make("section", {});
const found = lineChart({...unit, label: "positives recovered by fraction screened",
  xLabel: "fraction of all rows screened", yLabel: pu ? "known positives recovered" : "positives recovered",
  series: files.map((one, f) => ({x: [0, ...rates[f].depth], y: [0, ...rates[f].recall]})), chance: [[0, 0], [1, 1]],
  hint: "Point at the chart to read values.",
  read: (f, i) => `${several ? names[f] + ": " : ""}the top ${shown(Math.round((i ? at(rates[f].depth, i) : 0) * (files[f].n_pos + files[f].n_other)))} rows ` +
    `(${shown(100 * (i ? at(rates[f].depth, i) : 0), 2)} %) contain ${shown(i ? at(files[f].tp, i) : 0)} positives`});
page.append(make("div", {class: "pair"},
  spread,
  make("section", {}, make("h2", {}, "Positives recovered"), legend(names), found.element)));

let chosen = 0, histogram;
function choose(f) {
  chosen = f;
  const one = files[f];
  histogram = mirrorChart({label: "scores by class", edges: one.histogram.edges, counts: [one.histogram.positive, one.histogram.other],
    names: ["positive", other], xLabel: "decision value", yLabel: `fraction: positive up, ${other} down`,
    hint: spreadHint(one.histogram.edges)});
  spread.replaceChildren(make("h2", {}, "Decision values by class"), legend(["positive", other], true), histogram.element);
  slider.max = one.thresholds.length;
  slider.value = one.start;
  move();
}
function move() {
  const one = files[chosen], i = Number(slider.value);
  const tp = i ? one.tp[i - 1] : 0, fp = i ? one.fp[i - 1] : 0;
  const fn = one.n_pos - tp, tn = one.n_other - fp, all = one.n_pos + one.n_other;
  const value = i ? one.thresholds[i - 1] : null;
  predicted.textContent = i ? (i === one.start ? `above T = ${Number(one.figures.threshold.toPrecision(6))}` : `${shown(value)} and above`) : "nothing";
  const margins = [tp + fp, tp + fn, tn + fp, tn + fn];
  const numbers = {tp, fp, fn, tn, recall: tp / one.n_pos, precision: tp + fp ? tp / (tp + fp) : 0,
    f1: 2 * tp / (2 * tp + fp + fn), fraction: (tp + fp) / all,
    mcc: margins.every(Boolean) ? (tp * tn - fp * fn) / Math.sqrt(margins[0]) / Math.sqrt(margins[1]) / Math.sqrt(margins[2]) / Math.sqrt(margins[3]) : 0};
  numbers.pu_score = tp + fp ? numbers.recall ** 2 / numbers.fraction : 0;
  if (corrected) {
    const a = one.figures.contamination_pos, b = one.figures.contamination_unl, share = DATA.chance;
    const clip = (x) => Math.min(1, Math.max(0, x)), apart = 1 - a - b, u = fp / one.n_other;
    const hit = clip(((1 - b) * numbers.recall - a * u) / apart), miss = clip(((1 - a) * u - b * numbers.recall) / apart);
    numbers.true_recall = hit;
    numbers.true_precision = hit > 0 ? share * hit / (share * hit + (1 - share) * miss) : 0;
    // the dot lies on the drawn curve, which is monotone
    const curve = drawn[chosen];
    const above = value === null ? 0 : i === one.start ? one.corrected.start + 1 : curve.t.filter((t) => t >= value).length;
    pr.mark(chosen, above ? curve.recall[above - 1] : 0, curve.precision[Math.max(above - 1, 0)]);
    roc.mark(chosen, above ? curve.fall[above - 1] : 0, above ? curve.recall[above - 1] : 0);
  }
  for (const [name, where] of Object.entries(live)) where.textContent = shown(numbers[name]);
  if (!corrected) {
    pr.mark(chosen, numbers.recall, tp + fp ? numbers.precision : rates[chosen].precision[0]);
    roc.mark(chosen, fp / one.n_other, numbers.recall);
  }
  found.mark(chosen, numbers.fraction, numbers.recall);
  if (value !== null) histogram.line(value);
}
slider.addEventListener("input", move);
chooser.addEventListener("change", () => choose(Number(chooser.value)));
choose(0);

/* All figures, and how the page was made. */
const rows = DATA.rows.filter(([name]) => files.some((one) => one.figures[name] !== undefined)).map(([name, label, better]) => {
  const values = files.map((one) => one.figures[name]);
  const numbers = values.filter((value) => typeof value === "number");
  const best = better === 0 || !several || Math.min(...numbers) === Math.max(...numbers) ? null
    : better > 0 ? Math.max(...numbers) : Math.min(...numbers);
  const cellsOf = values.map((value, f) => ({text: shown(value), best: best !== null && value === best,
    more: several ? interval(files[f], name) : ""}));
  return [label, ...cellsOf, ...(several ? [] : [interval(files[0], name)])];
});
page.append(make("section", {}, make("h2", {}, "All figures"),
  table(["", ...(several ? names : ["value", "95 %"])], rows)));
if (several && files[1].differences.length) {
  page.append(make("section", {}, make("h2", {}, `Difference from ${names[0]} (paired bootstrap)`),
    table(["", ...names.slice(1)], files[1].differences.map(([label], row) =>
      [label, ...files.slice(1).map((one) => {
        const [, value, low, high] = one.differences[row];
        return `${shown(value)} (${shown(low)} to ${shown(high)})`;
      })]))));
}
page.append(make("section", {}, make("h2", {}, "How this page was made"),
  ...DATA.assumptions.map((text) => make("p", {class: "quiet"}, `Assumption: ${text}.`)),
  ...DATA.made.map((text) => make("p", {class: "quiet"}, text))));

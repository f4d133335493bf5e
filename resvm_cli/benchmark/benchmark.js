/* The page of resvm benchmark: sections of text, charts and sortable tables. */

const main = document.getElementById("page");
const SERIES = {resvm: 0, bagging: 1, cwsvm: 2, "cwsvm-published": 3};
const seriesOf = (method) => SERIES[method] ?? 4;

main.className = "broad";
main.append(make("h1", {}, DATA.heading), make("p", {class: "quiet"}, DATA.made));
main.append(make("nav", {class: "contents", "aria-label": "sections"}, ...DATA.sections.map((section, number) =>
  make("a", {href: `#section-${number}`}, section.title))));

/* A table that can be sorted by any column: numbers in descending order first, names alphabetically. */
function sortTable(content) {
  const order = content.rows.map((_, i) => i);
  const numeric = content.columns.map((_, c) => c >= content.names && content.rows.some((row) => row[c][1] !== null));
  const text = new Intl.Collator("en", {numeric: true});
  let by = -1, upward = true;
  const body = make("tbody", {});
  const heads = content.columns.map((name, c) => {
    const button = make("button", {type: "button"}, name || "which");
    button.addEventListener("click", () => {
      upward = by === c ? !upward : !numeric[c];
      by = c;
      arrange();
    });
    return make("th", {scope: "col", "aria-sort": "none", ...(numeric[c] ? {} : {class: "words"})}, button);
  });
  function arrange() {
    order.sort((i, j) => {
      if (by < 0) return i - j;
      const [a, b] = [content.rows[i][by], content.rows[j][by]];
      if (numeric[by]) {
        if (a[1] === null || b[1] === null) return (a[1] === null) - (b[1] === null) || i - j; // no value: last
        return (upward ? 1 : -1) * (a[1] - b[1]) || i - j;
      }
      return (upward ? 1 : -1) * text.compare(a[0], b[0]) || i - j;
    });
    heads.forEach((head, c) => head.setAttribute("aria-sort", c === by ? (upward ? "ascending" : "descending") : "none"));
    body.replaceChildren(...order.map((i) => make("tr", {}, ...content.rows[i].map(([shown, , mark], c) =>
      make(c ? "td" : "th", {...(c ? {} : {scope: "row"}), class: [mark, numeric[c] ? "" : "words"].join(" ").trim()}, shown)))));
  }
  arrange();
  return make("div", {class: `sorted ${content.prose ? "prose" : content.columns.length > 10 ? "tight" : ""}`.trim()}, ...(content.title ? [make("h3", {}, content.title)] : []),
    make("div", {class: "scroll", tabindex: "0"}, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)));
}

function keyOf(methods, more = []) {
  return make("ul", {class: "legend"}, ...methods.map((method) =>
    make("li", {}, draw("svg", {viewBox: "0 0 32 10", "aria-hidden": "true"},
      draw("line", {x1: 0, x2: 32, y1: 5, y2: 5, "stroke-width": 3, style: `stroke: ${colour(seriesOf(method))}`})), method)),
  ...more);
}

/* One row per task: our means with their intervals, each over the published interval in gray. */
function intervalChart(figure) {
  const line = 13, gap = 12, left = 118, right = 20, top = 10, bottom = 46, width = 860;
  const heights = figure.tasks.map((task) => task.cells.length * line + gap);
  const height = top + bottom + heights.reduce((a, b) => a + b, 0);
  const values = figure.tasks.flatMap((task) => task.cells.flatMap((cell) =>
    [cell.mean, cell.low ?? cell.mean, cell.high ?? cell.mean, ...(cell.published || [])]));
  const low = Math.floor(Math.min(...values) / 5) * 5, high = Math.ceil(Math.max(...values) / 5) * 5;
  const px = (value) => left + (value - low) / (high - low || 1) * (width - left - right);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title});
  for (const tick of ticks(low, high)) {
    svg.append(draw("line", {class: "grid", x1: px(tick), x2: px(tick), y1: top, y2: height - bottom}),
      draw("text", {x: px(tick), y: height - bottom + 18, "text-anchor": "middle"}, String(tick)));
  }
  svg.append(draw("text", {x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"},
    "area under the PR curve by trapezoids, %"));
  let y = top;
  figure.tasks.forEach((task, number) => {
    const middle = y + heights[number] / 2;
    svg.append(draw("text", {x: left - 12, y: middle + 4, "text-anchor": "end"}, task.task));
    if (number) svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y, y2: y}));
    task.cells.forEach((cell, place) => {
      const at = y + gap / 2 + line * (place + .5), tint = `stroke: ${colour(seriesOf(cell.method))}`;
      if (cell.published) {
        svg.append(draw("rect", {class: "published", x: px(cell.published[0]), y: at - 4.5,
          width: Math.max(2, px(cell.published[1]) - px(cell.published[0])), height: 9, rx: 2}));
      }
      if (cell.low !== null) {
        svg.append(draw("line", {x1: px(cell.low), x2: px(cell.high), y1: at, y2: at, "stroke-width": 2, style: tint}));
      }
      svg.append(draw("circle", {cx: px(cell.mean), cy: at, r: 4, style: `fill: ${colour(seriesOf(cell.method))}`},
        draw("title", {}, `${task.task}, ${cell.method}: ${cell.mean.toFixed(1)}` +
          (cell.published ? `, published ${cell.published.map((bound) => bound.toFixed(1)).join(" to ")}` : ""))));
    });
    y += heights[number];
  });
  const grey = figure.tasks.some((task) => task.cells.some((cell) => cell.published))
    ? [make("li", {}, draw("svg", {viewBox: "0 0 32 10", "aria-hidden": "true"},
      draw("rect", {class: "published", x: 0, y: 0, width: 32, height: 10, rx: 2})), "published interval")] : [];
  return make("figure", {class: "wide"}, make("figcaption", {}, figure.title), keyOf(figure.methods, grey), svg);
}

/* Average ranks on a line, best on the left; a bar joins methods that do not differ significantly. */
function rankChart(figure) {
  const n = figure.methods.length, width = 460, left = 130, right = 130;
  const order = figure.methods.map((name, i) => [figure.ranks[i], name]).sort((a, b) => a[0] - b[0]);
  const half = Math.ceil(n / 2), bars = figure.cliques.length;
  const axis = 58, first = axis + 26 + 14 * bars, height = first + 26 * (half - 1) + 14;
  const px = (rank) => left + (rank - 1) / Math.max(1, n - 1) * (width - left - right);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `critical differences: ${figure.title}`});
  const stroke = (x1, y1, x2, y2, name = "ink") => svg.append(draw("line", {class: name, x1, y1, x2, y2}));
  stroke(px(1), axis, px(n), axis);
  for (let rank = 1; rank <= n; rank++) {
    stroke(px(rank), axis - 6, px(rank), axis);
    svg.append(draw("text", {x: px(rank), y: axis - 12, "text-anchor": "middle"}, String(rank)));
  }
  const reach = px(1 + figure.difference);
  stroke(px(1), 22, reach, 22);
  stroke(px(1), 17, px(1), 27);
  stroke(reach, 17, reach, 27);
  svg.append(draw("text", {x: (px(1) + reach) / 2, y: 12, "text-anchor": "middle"}, `critical difference ${figure.difference.toFixed(2)}`));
  const rankOf = Object.fromEntries(order.map(([rank, name]) => [name, rank]));
  figure.cliques.forEach((group, number) => {
    const ends = group.map((name) => rankOf[name]), level = axis + 13 + 14 * number;
    svg.append(draw("line", {class: "bar", x1: px(Math.min(...ends)) - 4, x2: px(Math.max(...ends)) + 4, y1: level, y2: level}));
  });
  order.forEach(([rank, name], number) => {
    const isLeft = number < half, level = first + 26 * (isLeft ? number : n - 1 - number);
    const side = isLeft ? left - 18 : width - right + 18;
    svg.append(draw("polyline", {class: "ink", fill: "none", points: `${px(rank)},${axis} ${px(rank)},${level} ${side},${level}`}),
      draw("text", {x: side + (isLeft ? -6 : 6), y: level + 4, "text-anchor": isLeft ? "end" : "start"}, `${name} (${rank.toFixed(2)})`));
  });
  return make("figure", {class: "ranks"}, make("figcaption", {}, figure.title), svg);
}

/* Curves colored by method, whatever their order. */
function methodChart(figure, options) {
  const chart = lineChart({...options, label: figure.title, hint: "Point at the chart to read it."});
  figure.methods.forEach((method, number) => {
    const paths = chart.element.querySelectorAll("path.series");
    paths[number].style.stroke = colour(seriesOf(method));
    paths[number].setAttribute("stroke-dasharray", DASHES[seriesOf(method) % DASHES.length]);
  });
  chart.element.querySelectorAll("polygon.band").forEach((band, number) => {
    band.style.fill = colour(seriesOf(figure.methods[number]));
  });
  const key = make("ul", {class: "legend"}, ...figure.methods.map((method) =>
    make("li", {}, draw("svg", {viewBox: "0 0 32 10", "aria-hidden": "true"},
      draw("line", {x1: 0, x2: 32, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": DASHES[seriesOf(method) % DASHES.length],
        style: `stroke: ${colour(seriesOf(method))}`})), method)));
  chart.element.prepend(make("figcaption", {}, figure.title), key);
  return chart.element;
}

const around = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  return [Math.max(0, Math.floor(low / 10) * 10), Math.min(100, Math.max(Math.ceil(high / 10) * 10, Math.floor(low / 10) * 10 + 10))];
};

function curveChart(figure) {
  const recall = figure.precision[0].map((_, i) => i + 1);
  return methodChart(figure, {x: [0, 100], y: around(figure.precision.flat()), xLabel: "recall, %", yLabel: "precision, %",
    series: figure.precision.map((y) => ({x: recall, y})),
    read: (number, i) => `${figure.methods[number]}: precision ${figure.precision[number][i].toFixed(1)} at recall ${recall[i]} %`});
}

function contaminationChart(figure) {
  const levels = figure.series.flatMap((one) => one.x);
  return methodChart(figure, {x: [Math.min(...levels), Math.max(...levels)],
    y: around(figure.series.flatMap((one) => [...one.low, ...one.high])), xLabel: figure.axis, yLabel: "average precision, %",
    series: figure.series.map((one) => ({x: one.x, y: one.mean})),
    bands: figure.series.map((one, series) => ({series, x: one.x, low: one.low, high: one.high})),
    read: (number, i) => {
      const one = figure.series[number];
      return `${figure.methods[number]}: ${one.mean[i].toFixed(1)} (${one.low[i].toFixed(1)} to ${one.high[i].toFixed(1)}) at ${shown(one.x[i], 1)} %`;
    }});
}

const CHARTS = {intervals: intervalChart, ranks: rankChart, curves: curveChart, contamination: contaminationChart};
DATA.sections.forEach((section, number) => {
  main.append(make("section", {id: `section-${number}`}, make("h2", {}, section.title),
    ...section.sentences.map((told) => make("p", {class: "quiet"}, told)),
    ...(section.figures.length ? [make("div", {class: "figures"}, ...section.figures.map((one) => CHARTS[one.kind](one)))] : []),
    ...section.tables.map(sortTable)));
});

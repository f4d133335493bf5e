/* Elements and charts for resvm's pages: plain SVG, drawn once, with a readout of the values at the pointer. */

const DASHES = ["", "8 4", "2 3", "8 3 2 3", "12 4", "4 2"];
const colour = (number) => `var(--s${number % 6})`;

/* An element: make("p", {class: "quiet"}, "text", child). Text is never parsed as markup. */
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") element.style.cssText = value; // the page's policy forbids style attributes
    else element.setAttribute(name, value);
  }
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

function table(head, rows) {
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, place) => {
      const best = cell && cell.best;
      const text = cell && typeof cell === "object" ? cell.text : cell;
      const more = cell && cell.more ? [make("small", {}, cell.more)] : [];
      return make(place ? "td" : "th", place ? (best ? {class: "best"} : {}) : {scope: "row"}, String(text), ...more);
    })));
  const cells = head.map((text) => make("th", {scope: "col"}, text));
  return make("div", {class: "scroll", tabindex: "0"},
    make("table", {}, make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...body)));
}

function legend(names, solid = false) {
  return make("ul", {class: "legend"}, ...names.map((name, number) =>
    make("li", {}, draw("svg", {viewBox: "0 0 32 10", "aria-hidden": "true"},
      draw("line", {x1: 0, x2: 32, y1: 5, y2: 5, "stroke-width": solid ? 9 : 3,
        "stroke-dasharray": solid ? "" : DASHES[number % DASHES.length], style: `stroke: ${colour(number)}`})), name)));
}

const BOX = {width: 520, height: 400, left: 84, right: 26, top: 12, bottom: 48};

/* Draw axes with ticks at round values; return the two scales. */
function axes(svg, options) {
  const {width, height, left, right, top, bottom} = BOX;
  const [x0, x1] = options.x, [y0, y1] = options.y;
  const px = (x) => left + (x - x0) / (x1 - x0) * (width - left - right);
  const py = (y) => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
  const xText = options.xText || short, yText = options.yText || short;
  for (const x of options.xTicks || ticks(x0, x1)) {
    svg.append(draw("line", {class: "grid", x1: px(x), x2: px(x), y1: top, y2: height - bottom}),
      draw("text", {x: px(x), y: height - bottom + 18, "text-anchor": "middle"}, xText(x)));
  }
  for (const y of ticks(y0, y1)) {
    svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: py(y), y2: py(y)}),
      draw("text", {x: left - 8, y: py(y) + 4, "text-anchor": "end"}, yText(y)));
  }
  svg.append(
    draw("text", {x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, options.xLabel),
    draw("text", {transform: `translate(20 ${(top + height - bottom) / 2}) rotate(-90)`,
      "text-anchor": "middle"}, options.yLabel));
  return {px, py, back: (position) => x0 + (position - left) / (width - left - right) * (x1 - x0)};
}

function short(value) {
  const size = Math.abs(value);
  return size >= 1e4 ? value.toExponential(0).replace("+", "") : String(+value.toPrecision(3));
}

function ticks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/* Map tick positions, counted in bins, to round values for a histogram's axis. Bins are drawn equally
   wide, whatever their edges. Ticks go first where bins are narrowest, then wherever labels fit. */
function binTicks(edges) {
  const bins = edges.length - 1, runs = [];
  for (let bin = 0; bin < bins; bin++) {
    const width = edges[bin + 1] - edges[bin], last = runs[runs.length - 1];
    if (last && Math.max(width, last.width) < 1.5 * Math.min(width, last.width)) last.end = bin + 1;
    else runs.push({start: bin, end: bin + 1, width});
  }
  const found = new Map();
  for (const {start, end} of runs.sort((a, b) => a.width - b.width)) {
    const low = edges[start], high = edges[end];
    for (const value of ticks(low, high)) {
      const place = start + (value - low) / (high - low) * (end - start);
      if ([...found.keys()].every((other) => Math.abs(other - place) > bins / 12)) found.set(place, value);
    }
  }
  return found;
}

/* Curves. series: [{name, x, y, step}]; bands: [{series, x, low, high}]; chance: [[x, y], [x, y]];
   read(series, index) describes the point at the pointer. Returns {element, mark(series, x, y)}. */
function lineChart(options) {
  const svg = draw("svg", {viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": options.label});
  const {px, py, back} = axes(svg, options);
  svg.append(draw("rect", {class: "frame", x: BOX.left, y: BOX.top,
    width: BOX.width - BOX.left - BOX.right, height: BOX.height - BOX.top - BOX.bottom}));
  for (const band of options.bands || []) {
    const up = band.x.map((x, i) => `${px(x)},${py(band.high[i])}`);
    const down = band.x.map((x, i) => `${px(x)},${py(band.low[i])}`).reverse();
    svg.append(draw("polygon", {class: "band", points: up.concat(down).join(" "), style: `fill: ${colour(band.series)}`}));
  }
  if (options.chance) {
    const [[x1, y1], [x2, y2]] = options.chance;
    svg.append(draw("line", {class: "chance", x1: px(x1), y1: py(y1), x2: px(x2), y2: py(y2)}));
  }
  options.series.forEach((one, number) => {
    let path = "";
    one.x.forEach((x, i) => {
      if (!i) path = `M${px(x).toFixed(1)} ${py(one.y[i]).toFixed(1)}`;
      else path += (one.step ? `V${py(one.y[i]).toFixed(1)}` : "") + `L${px(x).toFixed(1)} ${py(one.y[i]).toFixed(1)}`;
    });
    svg.append(draw("path", {class: "series", d: path, "stroke-dasharray": DASHES[number % DASHES.length],
      style: `stroke: ${colour(number)}`}));
  });
  const marks = options.series.map((_, number) => {
    const dot = draw("circle", {class: "dot", r: 6.5, visibility: "hidden", style: `fill: ${colour(number)}`});
    svg.append(dot);
    return dot;
  });
  const cursor = draw("line", {class: "cursor", y1: BOX.top, y2: BOX.height - BOX.bottom, visibility: "hidden"});
  svg.append(cursor);
  const out = make("div", {class: "readout", "aria-live": "off"}, options.hint || "");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = back((event.clientX - box.left) / box.width * BOX.width);
    if (x < options.x[0] || x > options.x[1]) return;
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", px(x));
    cursor.setAttribute("x2", px(x));
    out.replaceChildren(...options.series.map((one, number) =>
      make("div", {}, options.read(number, nearest(one.x, x)))));
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    out.replaceChildren(options.hint || "");
  });
  const mark = (number, x, y) => {
    marks[number].setAttribute("cx", px(x));
    marks[number].setAttribute("cy", py(y));
    marks[number].setAttribute("visibility", "visible");
  };
  return {element: make("figure", {}, svg, out), mark};
}

/* Return the index of the entry closest to a value in an ascending list. */
function nearest(list, value) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1; else high = middle;
  }
  return low > 0 && value - list[low - 1] < list[low] - value ? low - 1 : low;
}

/* Explain a histogram's axis, where votes from 0 to 1 get more room than the sums beyond them. */
function spreadHint(edges) {
  const widths = edges.slice(1).map((edge, bin) => edge - edges[bin]);
  const even = Math.max(...widths) < 1.5 * Math.min(...widths);
  return (even ? "" : "The axis changes scale at 0 and 1: values in between are votes, and values beyond are sums over unanimous members. ") +
    "The outermost bins also hold all values beyond the axis.";
}

/* Two histograms over the same bins, each as fractions of its class, one above the axis and one below.
   Bins are drawn equally wide, whatever their edges. */
function mirrorChart(options) {
  const svg = draw("svg", {viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": options.label});
  const edges = options.edges, bins = edges.length - 1;
  const totals = options.counts.map((list) => list.reduce((a, b) => a + b, 0) || 1);
  const share = options.counts.map((list, which) => list.map((count) => count / totals[which]));
  const most = Math.max(...share.flat()) * 1.08;
  const round = binTicks(edges);
  const {px, py, back} = axes(svg, {x: [0, bins], y: [-most, most], xLabel: options.xLabel, yLabel: options.yLabel,
    xTicks: [...round.keys()], xText: (place) => short(round.get(place)),
    yText: (part) => short(Math.abs(part))});
  share.forEach((list, which) => list.forEach((part, bin) => {
    svg.append(draw("rect", {x: px(bin) + .5, y: which ? py(0) : py(part), width: px(1) - px(0) - 1,
      height: Math.abs(py(part) - py(0)), style: `fill: ${colour(which)}`}));
  }));
  svg.append(draw("line", {class: "frame", x1: BOX.left, x2: BOX.width - BOX.right, y1: py(0), y2: py(0)}));
  for (let bin = 1; bin < bins; bin++) {
    const before = edges[bin] - edges[bin - 1], after = edges[bin + 1] - edges[bin];
    if (Math.max(before, after) > 1.5 * Math.min(before, after)) {
      svg.append(draw("line", {class: "chance scale-change", x1: px(bin), x2: px(bin), y1: BOX.top, y2: BOX.height - BOX.bottom}));
    }
  }
  const cursor = draw("line", {class: "cursor", y1: BOX.top, y2: BOX.height - BOX.bottom, visibility: "hidden"});
  svg.append(cursor);
  const out = make("div", {class: "readout"}, options.hint || "");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = back((event.clientX - box.left) / box.width * BOX.width);
    const bin = Math.floor(x);
    if (bin < 0 || bin >= bins) return;
    out.textContent = `${shown(edges[bin], 3)} to ${shown(edges[bin + 1], 3)}: ` +
      options.names.map((name, which) => `${shown(options.counts[which][bin])} ${name}`).join(", ");
  });
  svg.addEventListener("pointerleave", () => { out.textContent = options.hint || ""; });
  const line = (value) => {
    const inside = Math.min(edges[bins], Math.max(edges[0], value));
    const bin = Math.min(bins - 1, Math.max(0, edges.findIndex((edge) => edge > inside) - 1 + (inside >= edges[bins] ? bins + 1 : 0)));
    const place = px(bin + (inside - edges[bin]) / (edges[bin + 1] - edges[bin]));
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    cursor.setAttribute("visibility", "visible");
  };
  return {element: make("figure", {}, svg, out), line};
}

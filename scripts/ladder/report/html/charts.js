"use strict";
// Draws charts with Vega-Lite as SVG, and lets the keyboard reach their marks.
window.drawChart = (() => {
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"];  // told apart by anyone
  const LIBRARY = "#d55e00", GREY = "#8a8f96", INK = "currentColor", OTHERS = "other rungs";
  const AXIS = { labelColor: INK, titleColor: INK, domainColor: INK, tickColor: INK,
    gridColor: INK, gridOpacity: .12, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 };
  const CONFIG = { background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis: AXIS,
    legend: { labelColor: INK, labelFontSize: 12, labelLimit: 220, symbolOpacity: 1 } };
  // Below the x axis: as many labels as there is room for, evenly picked.
  const across = (labels, width) => {
    const every = Math.ceil(22 * labels.length / (width - 60));  // the y axis takes 60
    return { labelAngle: -35, labelOverlap: false, values: labels.filter((_, at) => at % every === 0) };
  };
  const number = value => value >= 99.95 ? value.toFixed(0) : value.toPrecision(3);

  // Speeds over the shapes of one facet: of a ladder, a few rungs in colour; of a rung, its own
  // beside its parent's, the fastest of the ladder and of libraries.
  function climb(data, own, facet, width) {
    const [cases, rungs] = [data.cases, data.rungs];
    const points = data.points.map(([rung, at, speed, percent]) =>
      ({ rung, at, speed, percent, name: rungs[rung][0], role: rungs[rung][2] }))
      .filter(point => cases[point.at][1] === facet);
    const series = own === null ? named(data, points) : beside(data, points, own);
    const values = points.filter(point => point.series).map(point => ({
      ...point, label: cases[point.at][0], line: cases[point.at][2], link: rungs[point.rung][1],
      peer: point.role === "peer",
      told: `${point.name} at ${cases[point.at][0]}: ${number(point.speed)} ${data.unit}` +
        (point.percent === null ? "" : `, ${number(point.percent)} % of its ceiling`),
    }));
    const used = new Set(values.map(value => value.at));
    const shown = cases.map((one, at) => ({ label: one[0], ceiling: one[3], at }))
      .filter(one => used.has(one.at));
    const ceilings = shown.filter(one => one.ceiling !== null)
      .map(one => ({ ...one, told: `ceiling at ${one.label}: ${number(one.ceiling)} ${data.unit}` }));
    const speeds = values.map(value => value.speed);
    const log = own === null && Math.max(...speeds) > 20 * Math.min(...speeds);
    const labels = shown.map(one => one.label);
    const x = { field: "label", type: "nominal", title: data.axis,
      scale: { type: "band", domain: labels }, axis: across(labels, width) };
    const y = field => ({ field, type: "quantitative", title: data.unit,
      scale: log ? { type: "log" } : { zero: true }, axis: { format: "~r", tickCount: 6 } });
    const color = { field: "series", type: "nominal",
      scale: { domain: series.map(one => one[0]), range: series.map(one => one[1]) },
      legend: { orient: "top", title: null, columns: Math.max(1, Math.floor(width / 170)),
        symbolType: "circle" } };
    const opacity = { condition: { test: `datum.series === '${OTHERS}'`, value: .5 }, value: 1 };
    return {
      height: 300, data: { values },
      description: own === null ? `${data.title}: speed of each rung over the shapes`
        : `${rungs[own][0]}: speed over the shapes`,
      layer: [
        ...(ceilings.length ? [{ data: { values: ceilings },
          mark: { type: "rule", color: INK, strokeDash: [4, 3], strokeWidth: 1.5 },
          encoding: { x: { ...x, bandPosition: 0 }, x2: { field: "label", bandPosition: 1 },
            y: y("ceiling"), description: { field: "told" } } }] : []),
        ...(values.some(value => value.line) ? [{ transform: [{ filter: "datum.line" }],
          mark: { type: "line", aria: false, strokeWidth: 1.6 },
          encoding: { x, y: y("speed"), color, opacity,
            detail: { field: own === null ? "rung" : "series" } } }] : []),
        { mark: { type: "point", filled: true, size: 55, cursor: "pointer" },
          encoding: { x, y: y("speed"), color, opacity,
            shape: { field: "peer", type: "nominal", legend: null,
              scale: { domain: [false, true], range: ["circle", "diamond"] } },
            description: { field: "told" } } },
      ],
    };
  }

  function named(data, points) {
    const series = data.named.map((rung, i) => [data.rungs[rung][0], COLOURS[i]]);
    const peers = best(points.filter(point => point.role === "peer"));
    for (const point of points)
      point.series = data.named.includes(point.rung) ? point.name
        : peers.get(point.at) === point ? "fastest library" : OTHERS;
    points.sort((a, b) => (a.series !== OTHERS) - (b.series !== OTHERS));  // those in colour on top
    return [...series, ...(peers.size ? [["fastest library", LIBRARY]] : []), [OTHERS, GREY]];
  }
  function beside(data, points, own) {
    const [name, , , parent] = data.rungs[own];
    const steps = best(points.filter(point => point.role === "step"));
    const peers = best(points.filter(point => point.role === "peer"));
    const shapes = new Set(points.filter(point => point.rung === own).map(point => point.at));
    for (const point of points.filter(point => shapes.has(point.at)))
      point.series = point.rung === own ? name
        : point.name === parent ? `${parent}, its parent`
          : steps.get(point.at) === point ? "fastest step"
            : peers.get(point.at) === point ? "fastest library" : undefined;
    points.sort((a, b) => (a.rung === own) - (b.rung === own));
    const all = [[name, COLOURS[0]], [`${parent}, its parent`, COLOURS[1]],
      ["fastest step", COLOURS[2]], ["fastest library", LIBRARY]];
    return all.filter(([each]) => points.some(point => point.series === each));
  }
  function best(points) {
    const found = new Map();
    for (const point of points)
      if (!(found.get(point.at)?.speed >= point.speed)) found.set(point.at, point);
    return found;
  }

  function samples(data, width) {
    const unit = data.unit;
    const scale = { domain: [data.bins[0][0], data.bins.at(-1)[1]], zero: false, nice: false };
    const taken = data.taken.map(([at, time]) => ({ at, time }));
    const bins = data.bins.map(([low, high, count]) =>
      ({ low, high, count, none: 0, told: `${low} to ${high} ${unit}: ${count} samples` }));
    return {
      description: data.told,
      hconcat: [
        { width: .58 * width - 60, height: 160, data: { values: taken },
          mark: { type: "point", filled: true, size: 22, opacity: .8, color: COLOURS[0], aria: false },
          encoding: {
            x: { field: "at", type: "quantitative", title: "sample, in the order taken",
              axis: { tickCount: 5, grid: false } },
            y: { field: "time", type: "quantitative", title: `time, ${unit}`, scale } } },
        { width: .42 * width - 50, height: 160, data: { values: bins },
          mark: { type: "rect", color: COLOURS[0] },
          encoding: {
            y: { field: "low", type: "quantitative", title: null, scale, axis: { labels: false, ticks: false } },
            y2: { field: "high" },
            x: { field: "none", type: "quantitative", title: "samples", axis: { tickCount: 4, grid: false } },
            x2: { field: "count" },
            description: { field: "told" } } },
      ],
    };
  }

  function track(data, width) {
    const values = data.runs.filter(run => run[1] !== null)
      .map(([label, time]) => ({ label, time, told: `${label}: ${number(time)} ${data.unit}` }));
    const shifts = data.shifts.map(([label, verdict, told]) => ({ label, verdict, told }));
    const labels = data.runs.map(run => run[0]);
    const x = { field: "label", type: "nominal", title: null,
      scale: { type: "band", domain: labels }, axis: across(labels, width) };
    const y = { field: "time", type: "quantitative", title: `time, ${data.unit}`, scale: { zero: false } };
    const at = { ...x, bandPosition: 0 };
    return {
      height: 180, description: `Time over commits, ${data.title}`,
      layer: [
        { data: { values: shifts }, mark: { type: "rule", color: INK, strokeDash: [2, 2] },
          encoding: { x: at, description: { field: "told" } } },
        { data: { values: shifts }, mark: { type: "text", align: "left", dx: 4, color: INK, aria: false },
          encoding: { x: at, y: { value: 8 }, text: { field: "told" } } },
        { data: { values }, mark: { type: "line", aria: false, color: COLOURS[0], strokeWidth: 1.6 },
          encoding: { x, y } },
        { data: { values }, mark: { type: "point", filled: true, size: 55, color: COLOURS[0], opacity: 1 },
          encoding: { x, y, description: { field: "told" } } },
      ],
    };
  }

  // Marks take the focus one at a time: arrows go along a rung's shapes, and up and down at a shape.
  function reach(host, suffix) {
    const marks = [...host.querySelectorAll(".role-mark path[aria-label]")]
      .map(element => ({ element, datum: element.__data__?.datum })).filter(mark => mark.datum?.told);
    const show = one => { for (const each of marks) each.element.tabIndex = each === one ? 0 : -1; };
    for (const { element, datum } of marks) {
      element.setAttribute("role", datum.link ? "link" : "img");
      element.removeAttribute("aria-roledescription");
    }
    show(marks.at(-1));
    const go = datum => { if (datum.link) location.hash = datum.link + suffix; };
    const of = event => marks.find(mark => mark.element === event.target);
    let told = null;
    host.onpointerdown = event => { told = event.pointerType === "touch" && of(event) !== told ? null : of(event); };
    host.onclick = event => {  // a finger's first tap tells, the second goes
      const mark = of(event);
      if (mark && mark === told) go(mark.datum);
      told = mark;
    };
    host.onkeydown = event => {
      const mark = of(event);
      if (!mark) return;
      if (event.key === "Enter") return go(mark.datum);
      const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!along && !up) return;
      event.preventDefault();
      const { datum } = mark;
      const row = up && datum.speed !== undefined
        ? marks.filter(each => each.datum.at === datum.at).sort((a, b) => a.datum.speed - b.datum.speed)
        : marks.filter(each => each.datum.rung === datum.rung).sort((a, b) => a.datum.at - b.datum.at);
      const next = row[row.indexOf(mark) + (along || up)];
      if (next) { show(next); next.element.focus(); }
    };
  }

  return (box, data, own, suffix) => {
    const host = document.createElement("div");
    const { kind } = box.dataset;
    let facet = 0, width = 0;
    if (kind === "climb") {
      const facets = data.facets.map((name, i) => [name, i]).filter(([, i]) => own === null ||
        data.points.some(([rung, at]) => rung === own && data.cases[at][1] === i));
      facet = facets[0]?.[1] ?? 0;
      if (facets.length > 1) {
        const label = document.createElement("label"), select = document.createElement("select");
        select.append(...facets.map(([name, i]) => new Option(name, i)));
        select.onchange = () => { facet = Number(select.value); render(); };
        label.append("Where ", select);
        box.append(label);
      }
    }
    box.append(host);
    function render() {
      const made = kind === "climb" ? climb(data, own, facet, width)
        : kind === "samples" ? samples(data, width) : track(data, width);
      const spec = { ...made, config: CONFIG, ...(kind === "samples" ? {} : { width, autosize: { type: "fit-x", contains: "padding" } }) };
      const options = { renderer: "svg", actions: false, tooltip: false, defaultStyle: false };
      vegaEmbed(host, spec, options).then(() => reach(host, suffix));
    }
    new ResizeObserver(() => {
      if (host.clientWidth && host.clientWidth !== width) { width = host.clientWidth; render(); }
    }).observe(host);
  };
})();

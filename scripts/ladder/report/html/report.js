"use strict";
(() => {
  const root = document.documentElement;
  const main = document.getElementById("main");
  const pages = [...document.querySelectorAll(".page[data-route]")];
  const gpus = document.getElementById("gpu");
  const FEW = 250;  // rows drawn at once; the rest on demand

  // Where we are: "#/ladder/rung?gpu=2" is a page of the second GPU.
  function here() {
    const [path, query] = location.hash.slice(1).split("?");
    return { path: path || "/", gpu: new URLSearchParams(query).get("gpu") || "1" };
  }
  function pageOf(path, gpu) {
    return pages.find(p => p.dataset.route === path && (p.dataset.run || gpu) === gpu);
  }

  const narrow = matchMedia("(max-width: 60rem)").matches;
  for (const each of document.querySelectorAll(".tree")) each.open = !narrow;

  let shown = null;
  function show() {
    if (location.hash === "#main") return;
    const { path, gpu } = here();
    const page = pageOf(path, gpu) || document.getElementById("nowhere");
    for (const other of document.querySelectorAll(".page"))
      if (other !== page) other.setAttribute("hidden", "until-found");
    page.removeAttribute("hidden");
    for (const box of page.querySelectorAll(".rows")) draw(box);
    for (const box of page.querySelectorAll(".chart")) chart(box, gpu);
    for (const box of page.querySelectorAll(".counters")) count(box);
    for (const box of page.querySelectorAll(".tree-here")) tree(box, page);
    for (const box of page.querySelectorAll("[data-source]")) source(box);
    for (const nav of document.querySelectorAll("header nav")) {
      nav.hidden = nav.dataset.run !== gpu;
      for (const link of nav.querySelectorAll("a")) {
        const to = link.getAttribute("href").slice(1).split("?")[0];
        const on = to === path || (to.length > 1 && path.startsWith(to + "/"));
        on ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
      }
    }
    if (gpus) gpus.value = gpu;
    document.querySelector(".home").setAttribute("href", "#/" + (gpu === "1" ? "" : "?gpu=" + gpu));
    main.classList.add("routed");
    tip.hidden = true;
    if (shown && shown !== page) { scrollTo(0, 0); main.focus({ preventScroll: true }); }
    shown = page;
  }

  function chart(box, gpu) {
    if (box.firstChild) return;
    const { ladder, rung, kind } = box.dataset, found = block("charts-" + gpu);
    const data = found[kind === "climb" ? ladder : rung][kind];
    const own = kind === "climb" && rung ? data.rungs.findIndex(one => one[1] === rung) : null;
    drawChart(box, data, own, gpu === "1" ? "" : "?gpu=" + gpu);
  }
  function count(box) {
    if (box.firstChild) return;
    const { names, rungs } = block(box.dataset.block), told = rungs[box.dataset.rung];
    const groups = new Map();
    names.forEach(([group, name], i) => {
      if (told[i] === "") return;
      if (!groups.has(group)) groups.set(group, make("tbody"));
      const line = make("tr");
      line.append(make("th", name, { scope: "row" }), make("td", told[i]));
      groups.get(group).append(line);
    });
    for (const [group, body] of groups) {
      const table = make("table");
      table.append(make("caption", group), body);
      box.append(table);
    }
  }
  // The tree of a rung's page is its ladder's, with the rung marked.
  function tree(box, page) {
    if (box.firstChild) return;
    const copy = pageOf(box.dataset.ladder, page.dataset.run).querySelector(".tree").cloneNode(true);
    const own = [...copy.querySelectorAll("a")]
      .find(link => link.getAttribute("href").slice(1).split("?")[0] === page.dataset.route);
    own?.setAttribute("aria-current", "page");
    copy.open = !narrow;
    box.append(copy);
  }
  function source(box) {
    if (box.querySelector("pre")) return;
    const page = pages.find(each => each.dataset.route === "source/" + box.dataset.source);
    box.append(page.querySelector("pre").cloneNode(true));
  }

  // A table of a data block: rows of one ladder, or one rung, or all.
  const blocks = new Map();
  function block(id) {
    if (!blocks.has(id)) {
      const found = JSON.parse(document.getElementById(id).textContent);
      blocks.set(id, found.texts ? unpacked(found) : found);
    }
    return blocks.get(id);
  }
  // A row is a list, and a text in it the text's place among all.
  function unpacked({ columns, texts, rows }) {
    const told = cell => (typeof cell === "number" ? texts[cell] : cell);
    const row = ([name, link, bad, ...cells]) =>
      ({ name: texts[name], link: texts[link], bad: !!bad, cells: cells.map(told) });
    return { columns, rows: rows.map(row) };
  }
  const text = cell => (Array.isArray(cell) ? cell[0] : cell) ?? "";
  const value = cell => (Array.isArray(cell) ? cell[1] : cell);
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }
  function make(tag, content = "", attributes = {}) {
    const element = document.createElement(tag);
    element.textContent = content;
    for (const [name, given] of Object.entries(attributes)) element.setAttribute(name, given);
    return element;
  }

  function draw(box) {
    if (box.firstChild) return;
    const { columns, rows } = block(box.dataset.block);
    const scope = box.dataset.scope;  // the route of a ladder or a rung
    const own = rows.filter(row =>
      scope === undefined || row.link === scope || row.link.startsWith(scope + "/"));
    const ofRung = scope?.split("/").length === 3;
    const used = columns.map((_, i) => i).filter(i =>
      own.some(row => text(row.cells[i])) &&
      !(columns[i][0] === "ladder" && scope !== undefined));
    const suffix = here().gpu === "1" ? "" : "?gpu=" + here().gpu;
    let sort = null, down = false, all = false;

    const tools = make("div", "", { class: "tools" });
    const label = make("label", "Filter ");
    const input = make("input", "", { type: "search", placeholder: "words to find in a row" });
    label.append(input);
    const count = make("output", "", { "aria-live": "polite" });
    const more = make("button", "", { type: "button" });
    tools.append(label, count, more);
    const scroll = make("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" });
    const table = make("table"), head = make("thead"), body = make("tbody"), names = make("tr");
    for (const i of used) {
      const th = make("th", "", { scope: "col", "aria-sort": "none" });
      const button = make("button", columns[i][0], { type: "button" });
      if (columns[i][1]) th.className = "number";
      button.addEventListener("click", () => {
        // Numbers start with the largest, texts with the first; a third click is the file's order.
        const first = columns[i][1];
        if (sort !== i) { sort = i; down = first; }
        else if (down === first) down = !first;
        else sort = null;
        for (const other of names.children) other.setAttribute("aria-sort", "none");
        if (sort !== null) th.setAttribute("aria-sort", down ? "descending" : "ascending");
        fill();
      });
      th.append(button);
      names.append(th);
    }
    head.append(names);
    table.append(head, body);
    scroll.append(table);
    box.append(tools, scroll);

    function fill() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = own.filter(row => {
        row.text ??= [row.name, ...row.cells.map(text)].join(" ").toLowerCase();
        return words.every(word => row.text.includes(word));
      });
      if (sort !== null) {
        const has = row => text(row.cells[sort]) !== "";
        const order = (a, b) => (down ? -1 : 1) * compare(value(a.cells[sort]), value(b.cells[sort]));
        found = [...found.filter(has).sort(order), ...found.filter(row => !has(row))];
      }
      const few = all ? found : found.slice(0, FEW);
      body.replaceChildren(...few.map(line));
      count.textContent = `${found.length} of ${own.length} rows` +
        (few.length < found.length ? `, the first ${few.length} shown` : "");
      more.textContent = `Show all ${found.length}`;
      more.hidden = few.length === found.length;
    }
    function line(row) {
      const tr = make("tr", "", { title: row.name });
      if (row.bad) tr.className = "bad";
      for (const i of used) {
        const linked = i === 0 && row.link && !ofRung;
        const td = make("td", linked ? "" : text(row.cells[i]));
        if (linked) td.append(make("a", text(row.cells[i]), { href: "#" + row.link + suffix }));
        if (columns[i][1]) td.className = "number";
        tr.append(td);
      }
      return tr;
    }
    input.addEventListener("input", fill);
    more.addEventListener("click", () => { all = true; fill(); });
    fill();
  }

  // Tips of a chart's marks: with the mouse, by keyboard and by touch. A reader has their labels.
  const tip = document.getElementById("tip");
  function tell(event) {
    const mark = event.target.closest?.(".chart path[aria-label], .chart line[aria-label]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("aria-label");
    const at = mark.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - tip.offsetWidth - 8);
    const top = at.top - tip.offsetHeight - 6;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (top < 8 ? at.bottom + 6 : top) + "px";
  }
  for (const kind of ["mouseover", "focusin", "focusout"]) document.addEventListener(kind, tell);
  document.addEventListener("keydown", event => { if (event.key === "Escape") tip.hidden = true; });

  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  function paint() { theme.textContent = "Theme: " + (root.dataset.theme || "auto"); }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % 3];
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a file has no storage */ }
    paint();
  });
  paint();

  gpus?.addEventListener("change", () => {
    const path = pageOf(here().path, gpus.value) ? here().path : "/";
    location.hash = path + (gpus.value === "1" ? "" : "?gpu=" + gpus.value);
  });
  // The browser's own search opens the page that it found something in.
  for (const page of pages)
    page.addEventListener("beforematch", () => {
      const gpu = page.dataset.run || here().gpu;
      location.hash = page.dataset.route + (gpu === "1" ? "" : "?gpu=" + gpu);
    });
  addEventListener("hashchange", show);
  show();
})();

"use strict";
// Texts of the study are put on the page through textContent only, so no string is interpreted as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  byId("data").remove();
  const units = data.units;
  const place = new Map(units.map((unit, n) => [unit.id, n]));
  const PAGE = 100;
  let shown = [];
  let at = -1;
  let first = 0;

  const make = (tag, text, kind) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const nameOf = (who) => data.who[who][0];
  const kindOf = (who) => data.who[who][1];
  const plain = (index) => data.texts[index].map((piece) => (Array.isArray(piece) ? piece[0] : piece)).join("");
  // Repeats and revisions are shown, but filters use the first label.
  const said = (unit, field) => (unit.labels || []).filter((l) => l.field === field && !l.layer && !l.repeat);
  const searchable = new Map();
  const words = (unit) => {
    if (!searchable.has(unit)) {
      const whys = (unit.labels || []).map((label) => label.why || "");
      const notes = (unit.remarks || []).map((remark) => remark[1]);
      const texts = (unit.texts || []).map((text) => text[1] + "\n" + plain(text[2]));
      searchable.set(unit, [unit.id, unit.question, ...texts, ...whys, ...notes].join("\n").toLowerCase());
    }
    return searchable.get(unit);
  };

  // A unit can have several of these statuses.
  const STATUSES = {
    "waits for a blind label": (unit) => Boolean(unit.waits),
    "labelled by people": (unit, labels) => labels.some((l) => kindOf(l.who) !== "judge"),
    "labelled by judges only": (unit, labels) => labels.length > 0 && labels.every((l) => kindOf(l.who) === "judge"),
    "a judge gave no label": (unit) => Boolean(unit.lost),
    "no label": (unit, labels) => !unit.waits && labels.length === 0,
    "with a note or flag": (unit) => Boolean(unit.remarks),
  };
  const values = (labels, judges) =>
    new Set(labels.filter((l) => (kindOf(l.who) === "judge") === judges).map((l) => l.value));
  const DIFFERENCES = {
    "judge and people differ": (labels) => {
      const people = values(labels, false);
      return people.size > 0 && [...values(labels, true)].some((value) => !people.has(value) || people.size > 1);
    },
    "judges differ": (labels) => values(labels, true).size > 1,
    "people differ": (labels) => values(labels, false).size > 1,
    "nobody differs": (labels) => labels.length > 1 && new Set(labels.map((l) => l.value)).size === 1,
  };
  const confidences = (labels) => labels.map((l) => l.confidence).filter((c) => c !== undefined);
  const ORDERS = {
    "of the study": null,
    "surest judge first": (labels) => -Math.max(-1, ...confidences(labels)),
    "least sure judge first": (labels) => Math.min(2, ...confidences(labels)),
  };

  const choices = (id, texts, any, named = (value) => value) => {
    const select = byId(id);
    if (any !== null) select.append(new Option(any, ""));
    for (const value of texts) select.append(new Option(named(value), value));
    const label = document.querySelector(`[data-for="${id}"]`);
    if (label) label.hidden = texts.length < (any === null ? 2 : 1);
  };
  const sorted = (found) => [...new Set(found)].sort();
  const all = units.flatMap((unit) => unit.labels || []);
  const fields = [...new Set([...data.fields, ...all.map((l) => l.field)])];
  const people = Object.keys(data.who).filter((who) => kindOf(who) !== "judge");
  const judges = Object.keys(data.who).filter((who) => kindOf(who) === "judge");
  choices("field", fields, null);
  choices("judge", judges, "any", nameOf);
  choices("person", people, "any", nameOf);
  choices("system", sorted(units.map((unit) => unit.system).filter(Boolean)), "any");
  choices("status", Object.keys(STATUSES), "any");
  choices("differences", Object.keys(DIFFERENCES), "any");
  choices("order", Object.keys(ORDERS), null);
  const fillLabels = () => {
    byId("label").replaceChildren();
    choices("label", sorted(all.filter((l) => l.field === byId("field").value).map((l) => l.value)), "any");
  };
  fillLabels();

  const value = (id) => byId(id).value;
  const select = () => {
    const [field, label, judge, person] = ["field", "label", "judge", "person"].map(value);
    const [system, status, differences] = ["system", "status", "differences"].map(value);
    const search = value("search").trim().toLowerCase();
    const least = value("least") === "" ? null : Number(value("least"));
    const most = value("most") === "" ? null : Number(value("most"));
    const isMeant = (unit) => {
      if (system && unit.system !== system) return false;
      const labels = said(unit, field);
      const whose = [judge, person].filter(Boolean);
      for (const who of whose) {
        if (!labels.some((l) => l.who === who) && !(unit.lost || []).some((lost) => lost[0] === who)) return false;
      }
      const own = whose.length ? labels.filter((l) => whose.includes(l.who)) : labels;
      if (label && !own.some((l) => l.value === label)) return false;
      if (status && !STATUSES[status](unit, labels)) return false;
      // If a judge (or a person) is chosen, the other judges (or people) are left out of the comparison.
      const compared = labels.filter((l) => {
        const chosen = kindOf(l.who) === "judge" ? judge : person;
        return !chosen || l.who === chosen;
      });
      if (differences && !DIFFERENCES[differences](compared)) return false;
      if (least !== null || most !== null) {
        const some = confidences(judge ? own : labels);
        if (!some.some((c) => (least === null || c >= least) && (most === null || c <= most))) return false;
      }
      return !search || words(unit).includes(search);
    };
    shown = [];
    units.forEach((unit, n) => isMeant(unit) && shown.push(n));
    const key = ORDERS[value("order")];
    if (key) {
      const keys = new Map(shown.map((n) => [n, key(said(units[n], field).filter((l) => !judge || l.who === judge))]));
      shown.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    }
  };

  const drawList = () => {
    const list = byId("list");
    list.replaceChildren();
    shown.slice(first, first + PAGE).forEach((n, offset) => {
      const unit = units[n];
      const link = make("a", `${first + offset + 1}. ${unit.id}`);
      link.href = "#" + encodeURIComponent(unit.id);
      const own = (unit.texts || []).map((text) => plain(text[2]));
      link.append(make("small", own.length ? own[own.length - 1].slice(0, 120) : ""));
      if (first + offset === at) link.setAttribute("aria-current", "true");
      const line = make("li");
      line.append(link);
      list.append(line);
    });
    byId("back").disabled = first === 0;
    byId("more").disabled = first + PAGE >= shown.length;
    byId("back").parentElement.hidden = shown.length <= PAGE;
  };
  const markList = () => {
    for (const link of byId("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    const line = byId("list").children[at - first];
    if (!line) return;
    line.firstChild.setAttribute("aria-current", "true");
    const list = byId("list");
    if (line.offsetTop < list.scrollTop + list.offsetTop) list.scrollTop = line.offsetTop - list.offsetTop;
    const below = line.offsetTop + line.offsetHeight - list.offsetTop - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  };

  const HEADS = ["who", "question", "label", "confidence", "source", "reason"];
  const labelRow = (label) => {
    const row = make("tr");
    const kind = kindOf(label.who);
    const who = make("th", `${nameOf(label.who)} `);
    who.scope = "row";
    who.append(make("span", `(${kind === "human" ? "person" : kind})`, kind));
    const more = [label.layer, label.repeat ? `repeat ${label.repeat}` : "", label.from ? `from ${label.from}` : ""];
    const cells = [label.field, label.value, label.confidence === undefined ? "" : label.confidence.toFixed(2),
      [label.source, ...more].filter(Boolean).join(", "), label.why || ""];
    row.append(who, ...cells.map((text, n) => {
      const cell = make("td", text, n === 1 ? "value" : n === 4 ? "why" : "");
      cell.dataset.name = HEADS[n + 1];
      if (n === 1 || n === 4) cell.dir = "auto";
      return cell;
    }));
    return row;
  };
  const labelTable = (labels) => {
    const table = make("table");
    const head = make("tr");
    head.append(...HEADS.map((text) => Object.assign(make("th", text), { scope: "col" })));
    const top = make("thead");
    top.append(head);
    const body = make("tbody");
    body.append(...labels.map(labelRow));
    table.append(top, body);
    const box = make("div", undefined, "scroll");
    box.append(table);
    return box;
  };
  const drawUnit = () => {
    const article = byId("unit");
    article.replaceChildren();
    if (at < 0) {
      article.append(make("p", "No unit fits these filters.", "note"));
      return;
    }
    const unit = units[shown[at]];
    const title = make("h2");
    const link = make("a", unit.id);
    link.href = "#" + encodeURIComponent(unit.id);
    title.append(link);
    const facts = [`data set ${unit.dataset}`, `question ${unit.question}`];
    if (unit.system) facts.push(`system ${unit.system}`);
    article.append(title, make("p", facts.join(" · "), "note"));
    if (unit.waits) {
      article.append(make("p", "This unit waits for a blind label: its labels are not in this page.", "note"));
    } else if (unit.labels) {
      article.append(labelTable(unit.labels));
    } else {
      article.append(make("p", "Nobody has labelled this unit.", "note"));
    }
    for (const [run, status, reason] of unit.lost || []) {
      article.append(make("p", `${nameOf(run)} gave no label: ${status}${reason ? `, ${reason}` : ""}`, "note"));
    }
    for (const [person, text] of unit.remarks || []) article.append(make("p", `${person}, ${text}`, "note"));
    for (const [name, about, index] of unit.texts || []) {
      article.append(make("h3", about ? `${name}: ${about}` : name));
      const box = make("p", undefined, "text");
      box.dir = "auto";
      for (const piece of data.texts[index]) {
        box.append(Array.isArray(piece) ? make("mark", piece[0], piece[1]) : piece);
      }
      article.append(box);
    }
  };
  const counted = (n) => n.toLocaleString("en");
  const draw = (whole) => {
    const start = at < 0 ? 0 : Math.floor(at / PAGE) * PAGE;
    if (whole || start !== first) {
      first = start;
      drawList();
    }
    markList();
    drawUnit();
    const of = shown.length === units.length ? "" : ` (of ${counted(units.length)} on the page)`;
    byId("count").textContent = at < 0 ? `no unit${of}` : `${counted(at + 1)} of ${counted(shown.length)} units${of}`;
    byId("previous").disabled = at <= 0;
    byId("next").disabled = at < 0 || at + 1 >= shown.length;
  };
  const go = (to) => {
    if (to < 0 || to >= shown.length) return;
    at = to;
    history.replaceState(null, "", "#" + encodeURIComponent(units[shown[at]].id));
    draw(false);
    if (byId("unit").getBoundingClientRect().top < 0) byId("unit").scrollIntoView();
  };
  // If the current unit matches a new filter, it stays on the screen. A new order begins at its first unit.
  const filter = (anew) => {
    const now = at < 0 || anew ? -1 : shown[at];
    select();
    at = Math.max(shown.indexOf(now), shown.length ? 0 : -1);
    draw(true);
  };
  // A link to a unit shows the unit even if it does not match the filters.
  const follow = () => {
    let wanted = "";
    try {
      wanted = decodeURIComponent(location.hash.slice(1));
    } catch {
      wanted = location.hash.slice(1);
    }
    if (!wanted) return;
    const n = place.get(wanted);
    if (n === undefined) {
      byId("told").textContent = `This page has no unit ${wanted}: it may be outside the selection that was written.`;
      return;
    }
    if (!shown.includes(n)) {
      byId("filters").reset();
      fillLabels();
      select();
    }
    at = shown.indexOf(n);
    draw(true);
  };

  byId("title").textContent = `${data.title} (${data.task})`;
  document.title = `${data.task}: ${counted(units.length)} units`;
  byId("told").textContent = data.withheld
    ? `Labels of ${counted(data.withheld)} of the ${counted(units.length)} units are left out: somebody must still label them, or a unit of their item, blind.`
    : "Highlights show words of the question and reference answers; they do not by themselves mean relevance.";
  let timer = 0;
  byId("filters").addEventListener("input", (event) => {
    if (event.target.id === "field") fillLabels();
    clearTimeout(timer);
    timer = setTimeout(filter, event.target.id === "search" ? 150 : 0, event.target.id === "order");
  });
  byId("filters").addEventListener("reset", () => setTimeout(() => { fillLabels(); filter(); }, 0));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("previous").addEventListener("click", () => go(at - 1));
  byId("next").addEventListener("click", () => go(at + 1));
  byId("back").addEventListener("click", () => { first = Math.max(0, first - PAGE); drawList(); });
  byId("more").addEventListener("click", () => { first += PAGE; drawList(); });
  window.addEventListener("hashchange", follow);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && typing) typing.blur();
    if (typing) return;
    if (event.key === "j") go(at + 1);
    else if (event.key === "k") go(at - 1);
    else if (event.key === "/") {
      event.preventDefault();
      document.querySelector("#filters details").open = true;
      byId("search").focus();
    }
  });
  if (matchMedia("(max-width: 48rem)").matches) {
    for (const box of document.querySelectorAll("#filters details, #side")) box.open = false;
  }
  select();
  at = shown.length ? 0 : -1;
  draw(true);
  follow();
})();

// Sort a table by the column whose head is clicked or activated by key. A second click reverses the order.
for (const table of document.querySelectorAll("main table:not(.rest)")) {
  // Rows that are folded away belong to the same table, so they are sorted with the others.
  const folded = table.closest(".scroll")?.nextElementSibling;
  const rest = folded?.querySelector(":scope > .scroll > table.rest") ? folded : null;
  const all = () => [...table.tBodies[0].rows, ...(rest?.querySelectorAll("tbody tr") ?? [])];
  if (!table.tHead || all().length < 3) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      body.append(...all());
      rest?.remove();
      // A value "< 0.001" comes before 0.001. An empty or undefined cell of a column of numbers has no number.
      const value = (row) => {
        const cell = row.cells[column];
        const text = cell.firstChild?.textContent.trim() ?? "";
        if (!cell.classList.contains("n")) return text;
        const number = parseFloat(text.replace(/[,<\s]/g, ""));
        return text.startsWith("<") ? number - 1e-9 : number;
      };
      const order = new Intl.Collator(undefined, { numeric: true });
      const compare = (a, b) => (typeof a === "string" ? order.compare(a, b) : a - b) * (up ? 1 : -1);
      // What has no value stays at the end, in both directions.
      const missing = (a) => Number.isNaN(a) || a === "";
      const rows = [...body.rows].map((row) => [row, value(row)]);
      rows.sort(([, a], [, b]) => missing(a) - missing(b) || (missing(a) ? 0 : compare(a, b)));
      body.append(...rows.map(([row]) => row));
    });
  });
}

// A page of rows: the list, the filters, and the current row. Texts of the study are put on the page through textContent only,
// so no string is interpreted as markup.
function showRows() {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const read = (name) => JSON.parse(byId(`data-${name}`).textContent);
  const data = read("rows");
  const form = byId("filters");
  const PAGE = 100;
  const place = new Map(data.rows.map(([id], n) => [id, n]));
  // The places of the rows that the filters leave, the current one among them, and the first one in the list.
  let shown = [];
  let at = -1;
  let first = 0;

  const make = (tag, text = "", kind = "", ...inside) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (kind) element.className = kind;
    element.append(...inside);
    return element;
  };
  const parts = new Map();
  // Rows and texts are in parts, and a part is read when it is first needed.
  const get = (kind, n) => {
    const name = `${kind}-${Math.floor(n / data.parts[kind])}`;
    if (!parts.has(name)) parts.set(name, read(name));
    return parts.get(name)[n % data.parts[kind]];
  };
  const plain = (text) => text.map((piece) => (Array.isArray(piece) ? piece[0] : piece)).join("");
  const searchable = [];
  const words = (n) => {
    if (!searchable[n]) {
      const row = get("row", n);
      const texts = row.texts.map(([, about, text]) => `${about}\n${plain(get("text", text))}`);
      const reasons = row.labels.map((label) => label[6]);
      searchable[n] = [data.rows[n][0], ...row.facts, ...texts, ...reasons, ...row.notes].join("\n").toLowerCase();
    }
    return searchable[n];
  };

  const fields = () => [...form.elements].filter((box) => box.name);
  const clear = () => { for (const box of fields()) box.value = ""; };
  const select = () => {
    const search = form.elements.search.value.trim().toLowerCase();
    const wanted = [...form.querySelectorAll(".filter")].filter((box) => box.value).map((box) => {
      const { values, rows } = data.filters[box.dataset.title];
      return [rows, values.indexOf(box.value)];
    });
    const fits = (n) => wanted.every(([rows, value]) => rows[n].includes(value)) && (!search || words(n).includes(search));
    shown = [...data.rows.keys()].filter(fits);
    const values = data.orders[form.elements.order?.value];
    // A row without a value is last.
    if (values) shown.sort((a, b) => (values[a] === null) - (values[b] === null) || values[a] - values[b] || a - b);
  };

  // The address has the current row, the filters and the order, so that it can be sent to somebody.
  const address = (n) => {
    const set = [...new FormData(form)].filter(([, value]) => value);
    const filters = String(new URLSearchParams(set));
    return "#" + encodeURIComponent(data.rows[n][0]) + (filters && "&" + filters);
  };
  const drawList = () => {
    byId("list").replaceChildren(...shown.slice(first, first + PAGE).map((n, offset) => {
      const [id, summary] = data.rows[n];
      const link = make("a", `${first + offset + 1}. ${id}`, "", make("small", summary));
      link.href = address(n);
      return make("li", "", "", link);
    }));
    byId("back").disabled = first === 0;
    byId("more").disabled = first + PAGE >= shown.length;
    byId("back").parentElement.hidden = shown.length <= PAGE;
  };
  const markList = () => {
    const list = byId("list");
    list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const line = list.children[at - first];
    if (!line) return;
    line.firstChild.setAttribute("aria-current", "true");
    const above = line.offsetTop - list.offsetTop;
    list.scrollTop = Math.max(Math.min(list.scrollTop, above), above + line.offsetHeight - list.clientHeight);
  };

  const HEADS = ["who", "question", "label", "confidence", "source", "reason"];
  const labelRow = ([who, kind, question, label, confidence, source, reason]) => {
    const name = make("th", `${who} `, "", make("span", `(${kind === "human" ? "person" : kind})`, kind));
    name.scope = "row";
    const cells = [question, label, confidence === null ? "" : confidence.toFixed(2), source, reason];
    return make("tr", "", "", name, ...cells.map((text, n) => {
      const cell = make("td", text, ["", "value", "", "", "why"][n]);
      cell.dataset.name = HEADS[n + 1];
      cell.dir = "auto";
      return cell;
    }));
  };
  const labelTable = (labels) => {
    const heads = HEADS.map((text) => Object.assign(make("th", text), { scope: "col" }));
    const top = make("thead", "", "", make("tr", "", "", ...heads));
    return make("div", "", "scroll", make("table", "", "labels", top, make("tbody", "", "", ...labels.map(labelRow))));
  };
  const drawText = ([title, about, n]) => {
    const pieces = get("text", n).map((piece) => (Array.isArray(piece) ? make("mark", ...piece) : piece));
    const text = make("p", "", "text", ...pieces);
    text.dir = "auto";
    return [make("h3", about ? `${title}: ${about}` : title), text];
  };
  const drawRow = () => {
    const article = byId("row");
    if (at < 0) {
      article.replaceChildren(make("p", `No ${data.noun} fits these filters.`, "note"));
      return;
    }
    const row = get("row", shown[at]);
    const link = make("a", data.rows[shown[at]][0]);
    link.href = address(shown[at]);
    article.replaceChildren(
      make("h2", "", "", link),
      make("p", row.facts.join(" · "), "note"),
      ...(row.labels.length ? [labelTable(row.labels)] : []),
      ...row.notes.map((text) => make("p", text, "note")),
      ...row.texts.flatMap(drawText),
    );
  };
  const counted = (n) => n.toLocaleString("en");
  const draw = (anew) => {
    const start = at < 0 ? 0 : Math.floor(at / PAGE) * PAGE;
    if (anew || start !== first) {
      first = start;
      drawList();
    }
    markList();
    drawRow();
    const of = shown.length === data.rows.length ? "" : ` (of ${counted(data.rows.length)} on the page)`;
    byId("count").textContent =
      at < 0 ? `no ${data.noun}${of}` : `${counted(at + 1)} of ${counted(shown.length)} ${data.noun}s${of}`;
    byId("previous").disabled = at <= 0;
    byId("next").disabled = at < 0 || at + 1 >= shown.length;
  };
  const scroll = () => {
    const { top } = byId("row").getBoundingClientRect();
    if (top < 0 || top > innerHeight) byId("row").scrollIntoView();
  };
  const go = (to) => {
    if (to < 0 || to >= shown.length) return;
    at = to;
    history.replaceState(null, "", address(shown[at]));
    draw(false);
    scroll();
  };
  // A row that the new filters leave stays on the screen. A new order begins at its first row.
  const filter = (anew) => {
    const now = at < 0 || anew ? -1 : shown[at];
    select();
    at = Math.max(shown.indexOf(now), shown.length ? 0 : -1);
    if (at >= 0) history.replaceState(null, "", address(shown[at]));
    draw(true);
  };
  // Show the row of the address, with its filters. A row that does not fit them is shown without filters.
  const follow = () => {
    const [id, ...filters] = location.hash.slice(1).split("&");
    const set = new URLSearchParams(filters.join("&"));
    for (const box of fields()) {
      box.value = set.get(box.name) ?? "";
      // A value that the page does not have.
      if (box.selectedIndex < 0) box.value = "";
    }
    select();
    let wanted = id;
    try {
      wanted = decodeURIComponent(id);
    } catch {
      // The address was written by hand.
    }
    const n = place.get(wanted);
    byId("missing").textContent = wanted && n === undefined
      ? `This page has no ${data.noun} ${wanted}: it may be outside the selection that was written.` : "";
    if (n !== undefined && !shown.includes(n)) {
      clear();
      select();
    }
    at = Math.max(shown.indexOf(n), shown.length ? 0 : -1);
    draw(true);
  };

  const listen = () => {
    let timer = 0;
    form.addEventListener("input", ({ target }) => {
      clearTimeout(timer);
      timer = setTimeout(filter, target.name === "search" ? 150 : 0, target.name === "order");
    });
    byId("clear").addEventListener("click", () => { clear(); filter(true); });
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("previous").addEventListener("click", () => go(at - 1));
    byId("next").addEventListener("click", () => go(at + 1));
    const turn = (by) => { first = Math.max(0, first + by); drawList(); markList(); };
    byId("back").addEventListener("click", () => turn(-PAGE));
    byId("more").addEventListener("click", () => turn(PAGE));
    window.addEventListener("hashchange", () => { follow(); scroll(); });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = event.target.closest("input, select, textarea");
      if (event.key === "Escape" && typing) typing.blur();
      if (typing) return;
      if (event.key === "j") go(at + 1);
      else if (event.key === "k") go(at - 1);
      else if (event.key === "/") {
        event.preventDefault();
        form.querySelector("details").open = true;
        form.elements.search.focus();
      }
    });
  };
  if (matchMedia("(max-width: 48rem)").matches) {
    for (const box of document.querySelectorAll("#filters details, #side")) box.open = false;
  }
  // The first rows are drawn before the browser has read the whole file. The row of an address may be in a later part.
  if (!location.hash) follow();
  document.addEventListener("DOMContentLoaded", () => {
    if (location.hash) follow();
    listen();
  });
}
if (document.getElementById("data-rows")) showRows();

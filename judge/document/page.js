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

// Sort a table by the column whose head is clicked or activated by key. A second click reverses the order.
for (const table of document.querySelectorAll("main table")) {
  if (!table.tHead || table.tBodies[0].rows.length < 3) continue;
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
      // Rows that are folded away belong to the same table, so they are sorted with the others.
      const rest = table.closest(".scroll")?.nextElementSibling;
      if (rest?.matches("details")) {
        body.append(...rest.querySelectorAll("tbody tr"));
        rest.remove();
      }
      const value = (row) => {
        const text = row.cells[column].firstChild?.textContent.trim() ?? "";
        const number = parseFloat(text.replace(/[,<\s]/g, ""));
        return Number.isNaN(number) ? text.toLowerCase() : number;
      };
      // Numbers come before words, and undefined values stay at the end.
      const compare = (a, b) =>
        typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
      const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)) * (up ? 1 : -1));
      body.append(...rows);
    });
  });
}

"use strict";
// Tables: sorted by a click on a heading, filtered by a text. Without this script every row is shown.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
  const rest = rows.filter(row => row.className === "rest");
  let open = rest.length === 0, wanted = "";
  const show = () => {
    [...body.rows].forEach((row, index) => {
      row.hidden = wanted ? !row.textContent.toLowerCase().includes(wanted) : !open && index >= rows.length - rest.length;
    });
    if (more) more.hidden = open || Boolean(wanted);
  };
  let more = null;
  if (rest.length) {
    more = document.createElement("button");
    more.textContent = rest.length === 1 ? "1 more row" : rest.length.toLocaleString("en") + " more rows";
    more.addEventListener("click", () => { open = true; show(); });
    table.parentElement.after(more);
  }
  if (rows.length > 15) {
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "filter " + rows.length + " rows";
    field.setAttribute("aria-label", field.placeholder);
    field.addEventListener("input", () => { wanted = field.value.toLowerCase(); show(); });
    table.parentElement.before(field);
  }
  heads.forEach((head, column) => {
    if (rows.length < 2) return;
    const order = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.classList.contains("number") ? null : cell.textContent : Number(cell.dataset.v);
      };
      const sorted = rows.map(row => [value(row), row]).sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const less = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
        return down ? -less : less;
      });
      sorted.forEach(([, row]) => body.append(row));
      show();
    };
    head.tabIndex = 0;
    head.addEventListener("click", order);
    head.addEventListener("keydown", event => { if (event.key === "Enter") order(); });
  });
  show();
}

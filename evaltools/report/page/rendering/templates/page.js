"use strict";
// The page is whole without this: it lets tables be sorted by their columns.
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const isEmpty = (text) => text === "" || text === "-";
      const isNumber = (text) => Number.isFinite(Number(text));
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (isEmpty(x) || isEmpty(y)) return isEmpty(x) - isEmpty(y);
        const areNumbers = isNumber(x) && isNumber(y);
        const texts = isNumber(y) - isNumber(x) || x.localeCompare(y, undefined, { numeric: true });
        const order = areNumbers ? Number(x) - Number(y) : texts;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}


"use strict";
const table = document.getElementById("columns");
const body = table.tBodies[0];
const search = document.getElementById("search");
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");
const details = document.getElementById("details");

function bare(text) {  // without capitals and accents: the small letter of a dotted capital I has a dot apart
  return text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
}

function sortBy(head) {
  const place = head.cellIndex;
  const numeric = head.dataset.type === "number";
  const down = head.getAttribute("aria-sort") === "ascending";
  const key = (row) => row.cells[place].dataset.key;
  const value = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
  const rows = [...body.rows];
  rows.sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = numeric ? (value(x) < value(y) ? -1 : value(x) > value(y) ? 1 : 0) : x.localeCompare(y);
    return down ? -order : order;
  });
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
}

function show() {
  const text = bare(search.value.trim());
  let count = 0;
  for (const row of body.rows) {
    const wanted = filter.value === "all" || row.dataset.states.split(" ").includes(filter.value);
    row.hidden = !(wanted && bare(row.dataset.name).includes(text));
    count += row.hidden ? 0 : 1;
    const link = row.querySelector("a");  // a column that could not be compared has no section
    if (link !== null) document.querySelector(link.hash).hidden = row.hidden;
  }
  details.hidden = details.querySelector("details:not([hidden])") === null;
  shown.textContent = `${count} of ${body.rows.length} columns`;
}

function reveal() {
  const one = document.getElementById(location.hash.slice(1));
  if (one instanceof HTMLDetailsElement) one.open = true;
}

for (const head of table.tHead.rows[0].cells) head.addEventListener("click", () => sortBy(head));
search.addEventListener("input", show);
filter.addEventListener("change", show);
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  for (const one of details.querySelectorAll("details")) one.open = true;
});
show();
reveal();

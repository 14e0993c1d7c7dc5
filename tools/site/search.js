// Finds headings by the words in them, without a server. Without this file everything else works.
const field = document.getElementById("search");
const found = document.getElementById("found");
const top_ = document.body.dataset.top;
const SHOWN_MAX = 12;

function look() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ([heading, page]) => words.every((word) => `${heading} ${page}`.toLowerCase().includes(word));
  const here = ([heading]) => words.every((word) => heading.toLowerCase().includes(word));
  const hits = words.length ? PAGES.filter(fits).sort((one, other) => here(other) - here(one)).slice(0, SHOWN_MAX) : [];
  found.replaceChildren(...hits.map(([heading, page, address]) => {
    const item = document.createElement("li");
    const link = item.appendChild(document.createElement("a"));
    link.href = top_ + address;
    link.textContent = heading;
    if (page !== heading) link.appendChild(document.createElement("small")).textContent = page;
    return item;
  }));
  found.hidden = !hits.length;
}

field.hidden = false;
field.addEventListener("input", look);
document.addEventListener("keydown", (pressed) => {
  if (pressed.key === "/" && document.activeElement !== field) { field.focus(); pressed.preventDefault(); }
  if (pressed.key === "Escape") { found.hidden = true; field.blur(); }
  if (pressed.key === "Enter" && document.activeElement === field) found.querySelector("a")?.click();
});
document.addEventListener("click", (event) => { if (!event.target.closest("header")) found.hidden = true; });

// The map of confusions by keyboard, and the answer to what if while sliders are being moved.
import { say } from "./requests.js";
import { partOf } from "./swapping.js";

const map = document.querySelector("table.map");
const form = document.querySelector("form.sliders");

function restored(change) {
  const query = new URLSearchParams(location.search);
  change(query);
  history.replaceState(null, "", `${location.pathname}?${query}${location.hash}`);
}

function choose(link) {
  const key = link.dataset.cell;
  for (const cell of map.querySelectorAll("td[aria-selected]")) cell.removeAttribute("aria-selected");
  link.closest("td").setAttribute("aria-selected", "true");
  for (const one of document.querySelectorAll(".details article")) one.hidden = one.id !== `cell-${key}`;
  document.querySelector(".details .unchosen").hidden = true;
  restored((query) => query.set("cell", key));
}

// One cell is reached by Tab, the others by arrows: the pattern of a grid.
function walkable() {
  const links = [...map.querySelectorAll("a[data-cell]")];
  const rest = (one) => { for (const link of links) link.tabIndex = link === one ? 0 : -1; };
  rest(map.querySelector("td[aria-selected] a") ?? links[0]);
  const placed = new Map(links.map((link) => [link, [link.closest("tr").rowIndex, link.closest("td").cellIndex]]));
  const toward = (from, down, right) => {
    const [row, column] = placed.get(from);
    const ahead = links.filter((link) => {
      const [r, c] = placed.get(link);
      return down ? Math.sign(r - row) === down : r === row && Math.sign(c - column) === right;
    });
    const distance = ([r, c]) => down ? 1000 * Math.abs(r - row) + Math.abs(c - column) : Math.abs(c - column);
    return ahead.sort((a, b) => distance(placed.get(a)) - distance(placed.get(b)))[0];
  };
  const ways = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  map.addEventListener("keydown", (event) => {
    const link = event.target.closest("a[data-cell]");
    if (!link) return;
    if (event.key === " ") { event.preventDefault(); choose(link); }
    const next = ways[event.key] && toward(link, ...ways[event.key]);
    if (next) { event.preventDefault(); rest(next); next.focus(); }
  });
  map.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-cell]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    rest(link);
    choose(link);
  });
}

function asked() {
  const given = [...new FormData(form)].filter(([name, value]) => !(name.startsWith("mend-") && value === "0"));
  return new URLSearchParams(given);
}

async function answer() {
  const query = asked();
  try {
    const part = await partOf(`${form.dataset.answer}?${query}`, "#what-if-answer");
    if (!part) return;
    const place = document.getElementById("what-if-answer");
    const open = place.querySelector("details")?.open;
    place.replaceChildren(...part.childNodes);
    if (open) place.querySelector("details").open = true;
    const cell = new URLSearchParams(location.search).get("cell");
    if (cell) query.set("cell", cell);
    history.replaceState(null, "", `${location.pathname}?${query}#what-if`);
  } catch (fault) { say(fault.message); }
}

function live() {
  let due;
  const soon = () => { clearTimeout(due); due = setTimeout(answer, 40); };
  const told = (slider) => { form.querySelector(`output[for="${CSS.escape(slider.name)}"]`).textContent = `${slider.value} % put right`; };
  const reset = form.querySelector("[data-reset]");
  form.addEventListener("input", (event) => { if (event.target.type === "range") { told(event.target); soon(); } });
  form.addEventListener("submit", (event) => { event.preventDefault(); answer(); });
  reset.hidden = false;
  form.querySelector("button:not([data-reset])").hidden = true;
  reset.addEventListener("click", () => {
    for (const slider of form.querySelectorAll("input[type=range]")) { slider.value = 0; told(slider); }
    answer();
  });
}

if (map) walkable();
if (form) live();

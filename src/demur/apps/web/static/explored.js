// A page with an explorer: its point is kept in the link, and the answers behind it stand below.
import { explore } from "/views/explorer.js";
import { answersBelow } from "./answers.js";
import { pageData } from "./requests.js";

const REMEMBERED_AFTER = 300;

const told = pageData();
const figure = document.querySelector("[data-explorer]");
const facts = JSON.parse(document.getElementById("explorer-document").textContent);

function wanted({ x, ratio, align, from, to }) {
  const number = (value) => (value === null || value === undefined ? undefined : Number(value));
  return { x: number(x), ratio: number(ratio), align, region: from === null || to === null ? null : [from, to] };
}

// The link that restores the page, written when nothing has moved for a moment: browsers allow only so many changes.
let writing = 0;
function remembered() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const query = new URLSearchParams(location.search);
    for (const name of ["x", "ratio", "align", "from", "to", ...answers.names]) query.delete(name);
    const { x, ratio, align, region } = explorer.state();
    query.set("align", align);
    if (align !== "cost" && x !== null) query.set("x", Number(x.toPrecision(6)));
    query.set("ratio", ratio);
    if (region) ["from", "to"].forEach((name, end) => query.set(name, Number(region[end].toPrecision(6))));
    for (const [name, value] of answers.chosen()) query.append(name, value);
    history.replaceState(null, "", `?${query}${location.hash}`);
  }, REMEMBERED_AFTER);
}

const answers = answersBelow(document.getElementById("answers"), told, remembered);
const explorer = explore(figure, facts, globalThis.vegaEmbed, {
  state: wanted(told.state),
  onchange: ({ systems }) => { answers.moved(systems); remembered(); },
});
answers.moved(explorer.points());

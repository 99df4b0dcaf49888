// Going through turns without reloading the page: by links, by the form, and by the keys of left and right.
import { say } from "./requests.js";
import { partOf, swapIn } from "./swapping.js";

const inspector = () => document.getElementById("inspector");

async function show(query) {
  const place = inspector();
  try {
    const part = await partOf(`${place.dataset.turns}?${query}`, "#inspector");
    if (!part) return;
    const whole = location.pathname === place.dataset.turns ? place.dataset.turns : place.dataset.page;
    history.replaceState(null, "", `${whole}?${query}#inspector`);
    say(swapIn(place, part).querySelector(".whereabouts")?.textContent ?? "");
  } catch (fault) {
    say(fault.message);
    const told = place.querySelector(".fault");
    told.textContent = fault.message;
    told.hidden = false;
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#inspector a[data-turn]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  show(link.dataset.turn);
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("#inspector form")) return;
  event.preventDefault();
  const given = [...new FormData(event.target)].filter(([, value]) => value !== "");
  show(new URLSearchParams(given).toString());
});

document.addEventListener("change", (event) => {
  if (event.target.matches("#inspector select")) event.target.form.requestSubmit();
});

const typing = (target) => target.closest("input, select, textarea, [contenteditable], .scroll, .chart");

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || typing(event.target)) return;
  const way = { ArrowLeft: "previous", k: "previous", ArrowRight: "next", j: "next" }[event.key];
  const link = way && inspector()?.querySelector(`a[rel~="${way === "previous" ? "prev" : "next"}"]`);
  if (link) { event.preventDefault(); show(link.dataset.turn); }
});

// To who cannot see it a figure is one picture with its description; what it is drawn with is not read out.
function described(live, about) {
  const drawing = live.querySelector("svg.marks");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", about);
  for (const part of drawing.children) part.setAttribute("aria-hidden", "true");
  live.querySelector("summary")?.setAttribute("aria-label", "Save this figure");
}

function draw(place) {
  const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  const picture = place.querySelector("img");
  const live = document.createElement("div");
  live.className = "live";
  place.append(live);
  const actions = { export: true, source: false, compiled: false, editor: false };
  vegaEmbed(live, spec, { ast: true, actions, renderer: "svg", downloadFileName: place.dataset.spec.replace("spec", "figure") })
    .then(() => { described(live, picture.alt); picture.remove(); })
    .catch((fault) => { live.remove(); console.error(fault); });
}

// A figure that is folded has no width yet, so it is drawn when it is first unfolded by hand; on paper its picture stands.
for (const place of document.querySelectorAll("[data-spec]")) {
  const fold = place.closest("details");
  if (!fold || fold.open) draw(place);
  else fold.querySelector("summary").addEventListener("click", () => requestAnimationFrame(() => draw(place)), { once: true });
}
const folded = () => document.querySelectorAll("section > details, footer > details");
addEventListener("beforeprint", () => folded().forEach((part) => { part.dataset.shut = String(!part.open); part.open = true; }));
addEventListener("afterprint", () => folded().forEach((part) => { part.open = part.dataset.shut !== "true"; }));

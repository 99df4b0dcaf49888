for (const place of document.querySelectorAll("[data-spec]")) {
  const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  const picture = place.querySelector("img");
  const live = document.createElement("div");
  live.className = "live";
  place.append(live);
  const actions = { export: true, source: false, compiled: false, editor: false };
  vegaEmbed(live, spec, { ast: true, actions, renderer: "svg", downloadFileName: place.dataset.spec.replace("spec", "figure") })
    .then(() => picture.remove())
    .catch((fault) => { live.remove(); console.error(fault); });
}

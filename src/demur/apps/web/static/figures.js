// Draws every figure whose spec stands on the page. The content policy allows no eval and no inline style.

const SETTINGS = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };

export async function drawn(place, spec, options = {}) {
  const result = await globalThis.vegaEmbed(place, spec, { ...SETTINGS, ...options });
  // To who cannot see it the place is the picture, with its description; what it is drawn with is not read out.
  place.querySelector("svg")?.setAttribute("aria-hidden", "true");
  if (place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight) place.tabIndex = 0;
  return result;
}

function saveButton(name, view, kind) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = `Save as ${kind.toUpperCase()}`;
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.download = `${name}.${kind}`;
    link.href = await view.toImageURL(kind, kind === "png" ? 2 : 1);
    link.click();
  });
  return button;
}

function savable(place, view) {
  const line = document.createElement("p");
  line.className = "saving";
  line.append(...["svg", "png"].map((kind) => saveButton(place.dataset.figure.replace(/^spec-/, ""), view, kind)));
  place.after(line);
}

export function drawAll(root = document) {
  const places = [...root.querySelectorAll("[data-figure]")].filter((place) => !place.dataset.drawn);
  return Promise.all(places.map((place) => {
    place.dataset.drawn = "yes";
    const spec = JSON.parse(document.getElementById(place.dataset.figure).textContent);
    return drawn(place, spec).then((result) => savable(place, result.view)).catch((fault) => {
      place.textContent = `This figure could not be drawn: ${fault.message}`;
    });
  }));
}

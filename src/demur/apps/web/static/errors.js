// The form of the errors page follows every choice at once, and leaves what is empty out of its link.

const form = document.querySelector("[data-filters]");

function submitted() {
  for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
}

form?.addEventListener("submit", submitted);
form?.addEventListener("change", (event) => { if (event.target.matches("select")) form.requestSubmit(); });
addEventListener("pageshow", () => { for (const field of form?.elements ?? []) field.disabled = false; });

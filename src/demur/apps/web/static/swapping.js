// Parts of a page fetched again from the server, which makes and escapes them as it does whole pages.

let latest = 0;

// The part of another page of this server that a selector names; nothing if a later request has overtaken this one.
export async function partOf(address, selector) {
  const mine = ++latest;
  const response = await fetch(address, { headers: { accept: "text/html" } });
  if (response.status === 202) { location.assign(address); return null; }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (mine !== latest) return null;
  if (!response.ok) throw new Error(page.querySelector(".fault")?.textContent ?? `the server answered ${response.status}`);
  return document.importNode(page.querySelector(selector), true);
}

// Puts a part in its place; what had the focus has it again, by the name in data-focus.
export function swapIn(place, part) {
  const active = document.activeElement;
  const named = place.contains(active) ? active.dataset.focus : undefined;
  place.replaceWith(part);
  if (named) part.querySelector(`[data-focus="${CSS.escape(named)}"]`)?.focus({ preventScroll: true });
  return part;
}

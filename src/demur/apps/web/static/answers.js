// The answers behind the point of an explorer. The server finds and writes them; at most one request is under way, and
// while it is only the latest point waits. What is asked again by hand breaks off what was asked before.
import { Refusal, say } from "./requests.js";

const ROWS = 12;
const SAID_AFTER = 1000;

async function part(address, signal) {
  let response;
  try {
    response = await fetch(address, { signal, headers: { accept: "text/html" } });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refusal("the server does not answer; is demur serve still running?");
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!response.ok) throw new Refusal(page.querySelector(".fault")?.textContent ?? `the server answered ${response.status}`);
  return document.importNode(page.querySelector(".scroll"), true);
}

export function answersBelow(root, { runs, paired }, changed) {
  const found = (name) => root.querySelector(`[data-part="${name}"]`);
  const [form, table, fault, all] = ["filters", "table", "fault", "all"].map(found);
  const names = ["of", "show", "order", "where", "search"];
  let points = null;
  let next = null;
  let busy = null;
  let saying = 0;

  // Filters that are set; those at their defaults need no place in a link.
  function chosen() {
    const usual = { of: runs[0].id, show: "wrong", order: "surest" };
    return [...new FormData(form)].filter(([name, value]) => value !== "" && usual[name] !== value);
  }

  function restored() {
    const query = new URLSearchParams(location.search);
    for (const name of ["of", "show", "order", "search"]) {
      const value = query.get(name);
      if (value !== null && (form[name].tagName !== "SELECT" || [...form[name].options].some((option) => option.value === value))) form[name].value = value;
    }
    for (const value of query.getAll("where")) {
      for (const select of form.querySelectorAll('select[name="where"]')) {
        if ([...select.options].some((option) => option.value === value)) select.value = value;
      }
    }
  }

  function otherOf(place) {
    return paired && runs.length > 1 ? (place === 0 ? 1 : 0) : -1;
  }

  function asked() {
    const given = new FormData(form);
    const place = Math.max(0, runs.findIndex((run) => run.id === given.get("of")));
    const point = points[place];
    const query = new URLSearchParams({ run: runs[place].id, show: given.get("show"), order: given.get("order") });
    for (const value of given.getAll("where")) if (value) query.append("where", value);
    if (given.get("search")) query.set("search", given.get("search"));
    const written = (threshold) => (threshold === null ? "inf" : threshold);
    if (point.region) {
      query.set("low", written(point.region.low));
      if (point.region.high !== null) query.set("high", point.region.high);
    } else query.set("threshold", written(point.threshold));
    const other = otherOf(place);
    if (other >= 0) {
      query.set("other", runs[other].id);
      if (!point.region) query.set("other_threshold", written(points[other].threshold));
    }
    return query;
  }

  function said(text) {
    clearTimeout(saying);
    saying = setTimeout(() => say(text), SAID_AFTER);
  }

  function shown(piece) {
    table.replaceChildren(piece);
    said(piece.querySelector("caption").textContent);
    fault.hidden = true;
  }

  async function follow() {
    while (next) {
      const query = next;
      next = null;
      busy = new AbortController();
      all.href = `/errors?${query}`;
      try {
        shown(await part(`/errors/rows?${query}&limit=${ROWS}`, busy.signal));
      } catch (problem) {
        if (problem.name === "AbortError") continue;
        fault.textContent = problem.message;
        fault.hidden = false;
      }
    }
    busy = null;
  }

  function refresh({ afresh = false } = {}) {
    next = asked();
    if (busy === null) follow();
    else if (afresh) busy.abort();
  }

  function filtered() {
    refresh({ afresh: true });
    changed();
  }

  restored();
  form.hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); filtered(); });
  form.addEventListener("input", filtered);
  return { names, chosen, moved: (now) => { points = now; refresh(); } };
}

// The list of runs: uploads, finding, choosing for comparison, editing, deleting.
import { followed, made, pageData, renewed, say, sent, uploaded, visible } from "./requests.js";

const page = pageData();
const list = document.getElementById("list");
const uploads = document.getElementById("uploads");
const finding = document.getElementById("finding");
let chosen = [...page.chosen];
let order = page.order;

const counted = new Intl.NumberFormat("en");
const listed = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

// Choosing: the order of ticking is kept, as the first is the baseline.

function nameOf(id) {
  return list.querySelector(`tr[data-run="${CSS.escape(id)}"] th a`)?.textContent ?? id;
}

// The pinned run, of the kind of those chosen, is the baseline even if it is not ticked.
function pinned() {
  const kinds = chosen.map((id) => list.querySelector(`tr[data-run="${CSS.escape(id)}"] [data-label=Kind]`)?.textContent);
  const rows = [...list.querySelectorAll("tr.pinned")];
  return rows.find((row) => !kinds.length || kinds.includes(row.querySelector("[data-label=Kind]").textContent))?.dataset.run;
}

function compared() {
  const first = chosen.length ? pinned() : undefined;
  return first ? [first, ...chosen.filter((id) => id !== first)] : chosen;
}

function showChosen() {
  const boxes = [...list.querySelectorAll("input[name=run]")];
  for (const box of boxes) box.checked = chosen.includes(box.value);
  const all = list.querySelector("#all-runs");
  if (all) {
    all.checked = boxes.every((box) => box.checked);
    all.indeterminate = !all.checked && boxes.some((box) => box.checked);
  }
  const told = list.querySelector("#chosen");
  if (told) {
    const first = chosen[0];
    list.querySelector("#compare").disabled = compared().length < 2;
    for (const button of ["#tag-chosen", "#remove-chosen"]) list.querySelector(button).disabled = !first;
    const [baseline, ...against] = compared().map(nameOf);
    told.textContent = !first ? `Tick ${pinned() ? "a run to compare it with the baseline" : "two or more runs to compare them; the first is the baseline"}.`
      : !against.length ? `${baseline} is the baseline; tick another.`
      : against.length > 5 ? `${baseline} is the baseline; against it ${against.length} others.` : `${baseline} is the baseline; against it ${against.join(", ")}.`;
  }
  remember();
}

function asked() {
  const query = new URLSearchParams(finding ? [...new FormData(finding)].filter(([, value]) => value) : []);
  if (order !== "-added") query.set("order", order);
  for (const id of chosen) query.append("run", id);
  return query;
}

function remember() {
  const query = asked().toString();
  history.replaceState(null, "", query ? `/runs?${query}` : "/runs");
}

list.addEventListener("change", (event) => {
  if (event.target.id === "all-runs") {
    const shown = [...list.querySelectorAll("input[name=run]")].map((box) => box.value);
    chosen = chosen.filter((id) => !shown.includes(id));
    if (event.target.checked) chosen.push(...shown);
    showChosen();
    return;
  }
  if (!event.target.matches("input[name=run]")) return;
  const { value, checked } = event.target;
  chosen = chosen.filter((id) => id !== value);
  if (checked) chosen.push(value);
  showChosen();
});

list.addEventListener("submit", (event) => {
  event.preventDefault();
  const runs = compared();
  if (runs.length > 1) location.assign(`/compare?${new URLSearchParams(runs.map((id) => ["run", id]))}`);
});

// Finding: the list follows what is typed; the last request counts.

let looking = null;

async function renewList() {
  looking?.abort();
  looking = new AbortController();
  remember();
  try {
    const got = await renewed("#list", undefined, looking.signal);
    if (!finding && got.getElementById("finding")) { location.reload(); return; }
    if (finding) finding.elements.tag.replaceChildren(...[...got.querySelector("#tag").options].map((one) => document.importNode(one, true)));
    localTimes();
    showChosen();
    const found = list.querySelectorAll("tbody tr").length;
    say(`${found} ${found === 1 ? "run" : "runs"} shown`);
  } catch (fault) {
    if (fault.name !== "AbortError") say(fault.message);
  }
}

finding?.addEventListener("input", renewList);
finding?.addEventListener("submit", (event) => { event.preventDefault(); renewList(); });

// Editing and deleting.

const editing = document.getElementById("editing");
const removing = document.getElementById("removing");
const tagging = document.getElementById("tagging");
let leaving = [];

function askRemoval(ids) {
  leaving = [...ids];
  document.getElementById("removing-count").textContent = ids.length === 1 ? "this run" : `these ${ids.length} runs`;
  document.getElementById("removing-name").textContent = ids.map(nameOf).join(", ");
  opened(removing, "");
}

async function pin(id, on) {
  try {
    await sent("PUT", `/api/runs/${id}/baseline`, { pinned: on });
    await renewList();
    list.querySelector(`tr[data-run="${CSS.escape(id)}"] [data-pin]`)?.focus();
    say(on ? `${nameOf(id)} is the baseline now` : `${nameOf(id)} is no longer the baseline`);
  } catch (fault) {
    say(fault.message);
  }
}

function opened(dialog, id) {
  dialog.dataset.run = id;
  dialog.returnValue = "";
  dialog.querySelector(".fault").hidden = true;
  dialog.showModal();
}

list.addEventListener("click", async (event) => {
  const id = event.target.closest("tr")?.dataset.run;
  if (event.target.matches("[data-edit]")) {
    const row = event.target.closest("tr");
    const form = editing.querySelector("form");
    form.elements.name.value = row.querySelector("th a").dataset.text;
    form.elements.tags.value = [...row.querySelectorAll(".tag")].map((tag) => tag.dataset.text).join(", ");
    form.elements.note.value = row.querySelector(".note").dataset.text;
    for (const field of form.elements) field.dataset.before = field.value;
    opened(editing, id);
  } else if (event.target.matches("[data-remove]")) {
    askRemoval([id]);
  } else if (event.target.matches("#remove-chosen")) {
    askRemoval(chosen);
  } else if (event.target.matches("#tag-chosen")) {
    tagging.querySelector("form").reset();
    opened(tagging, "");
  } else if (event.target.matches("[data-pin]")) {
    await pin(id, event.target.getAttribute("aria-pressed") !== "true");
  } else if (event.target.matches("a.sort")) {
    event.preventDefault();
    order = event.target.dataset.order;
    await renewList();
    list.querySelector(`th[aria-sort] a`)?.focus();
  } else if (event.target.matches("[data-demo]")) {
    await addDemo(event.target);
  }
});

async function submitted(dialog, event, action, after) {
  event.preventDefault();
  const fault = dialog.querySelector(".fault");
  try {
    await action();
  } catch (refusal) {
    fault.textContent = refusal.message;
    fault.hidden = false;
    return;
  }
  dialog.close();
  await renewList();
  after();
}

for (const dialog of [editing, removing, tagging]) {
  dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
}

editing.addEventListener("submit", (event) => {
  const { name, tags, note } = editing.querySelector("form").elements;
  const body = {};  // only what was changed: the rest may have been changed elsewhere since this list was made
  if (name.value !== name.dataset.before) body.name = name.value;
  if (tags.value !== tags.dataset.before) body.tags = listed(tags.value);
  if (note.value !== note.dataset.before) body.note = note.value;
  const id = editing.dataset.run;
  submitted(editing, event, () => sent("PATCH", `/api/runs/${id}`, body), () => {
    list.querySelector(`tr[data-run="${CSS.escape(id)}"] [data-edit]`)?.focus();
    say(`${nameOf(id)} was changed`);
  });
});

removing.addEventListener("submit", (event) => {
  const names = leaving.map(nameOf);
  const each = async () => { for (const id of leaving) await sent("DELETE", `/api/runs/${id}`); };
  submitted(removing, event, each, () => {
    chosen = chosen.filter((one) => !leaving.includes(one));
    showChosen();
    if (!list.querySelector("tbody tr")) { location.assign("/runs"); return; }
    document.getElementById("main").focus();
    say(names.length === 1 ? `${names[0]} was deleted` : `${names.length} runs were deleted`);
  });
});

const tagsOf = (id) => [...list.querySelectorAll(`tr[data-run="${CSS.escape(id)}"] .tag`)].map((tag) => tag.dataset.text);

tagging.addEventListener("submit", (event) => {
  const { add, drop } = tagging.querySelector("form").elements;
  const gone = listed(drop.value);
  const tags = (id) => [...new Set([...tagsOf(id), ...listed(add.value)])].filter((tag) => !gone.includes(tag));
  const each = async () => { for (const id of chosen) await sent("PATCH", `/api/runs/${id}`, { tags: tags(id) }); };
  submitted(tagging, event, each, () => { list.querySelector("#tag-chosen")?.focus(); say(`${chosen.length} runs were tagged`); });
});

// Uploads, one after the other.

const options = document.getElementById("reading-options");

function uploadPath(file, form) {
  const query = new URLSearchParams({ file: file.name });
  for (const [name, value] of new FormData(form)) {
    if (!value || value === "error") continue;
    if (name === "tags") listed(value).forEach((tag) => query.append("tag", tag));
    else if (name.startsWith("column:")) query.append("map", `${name.slice(7)}=${value}`);
    else if (name === "confidence") listed(value).forEach((column) => query.append("confidence", column));
    else query.append(name, value);
  }
  return `/api/uploads?${query}`;
}

function refusalOf(file) {
  const readable = page.endings.some((ending) => file.name.toLowerCase().endsWith(ending));
  if (!readable) return `${visible(file.name)} is in no format known here: ${page.endings.filter((ending) => ending.lastIndexOf(".") === 0).join(" ")}, the text formats also with .gz or .zst`;
  if (file.size > page.limit) return `${visible(file.name)} is larger than an upload may be; add it in a terminal: demur add FILE`;
  return "";
}

function itemFor(title) {
  const parts = {
    what: made("span", { role: "status" }, "waiting"),
    bar: made("progress", { max: 1, "aria-label": `Progress of ${title}` }),
    cancel: made("button", { type: "button", "aria-label": `Cancel ${title}` }, "Cancel"),
    close: made("button", { type: "button", "aria-label": `Dismiss ${title}`, hidden: true }, "Dismiss"),
    below: made("div"),
  };
  parts.item = made("li", {}, made("div", { class: "head" }, made("strong", {}, title), parts.bar, parts.what, parts.cancel, parts.close), parts.below);
  parts.close.addEventListener("click", () => { parts.item.remove(); document.getElementById("files").focus(); });
  uploads.append(parts.item);
  return parts;
}

function finished(parts, text) {
  parts.what.textContent = text;
  parts.bar.remove();
  parts.cancel.hidden = true;
  parts.close.hidden = false;
}

function showAdded(parts, answer) {
  const fresh = answer.runs.filter((run) => run.new).length;
  finished(parts, fresh === answer.runs.length ? "added" : fresh ? "added; some were there already" : "was there already");
  for (const run of answer.runs) {
    const about = made("p", {}, made("a", { href: `/run/${run.id}` }, run.name), `: ${counted.format(run.n)} rows${run.new ? "" : ", there already under this name"}`);
    const said = [...run.warnings, ...run.notes];
    parts.below.append(about, ...(said.length ? [made("ul", {}, ...said.map((note) => made("li", {}, note)))] : []));
  }
}

async function follow(parts, number) {
  parts.cancel.onclick = () => sent("DELETE", `/jobs/${number}`).catch((fault) => say(fault.message));
  const job = await followed(number, (now) => {
    parts.what.textContent = now.state === "waiting" ? "waiting for other work to end" : now.what || "reading";
    if (now.total > 0) { parts.bar.max = now.total; parts.bar.value = now.done; } else parts.bar.removeAttribute("value");
  });
  if (job.state !== "done") throw new Error(job.message);
  showAdded(parts, job.answer);
  await renewList();
}

// The same file again with other settings: the browser still has it. Its columns are looked at when they are asked for.
function offerAgain(parts, file, open) {
  const form = options.cloneNode(true);
  form.removeAttribute("id");
  for (const [name, value] of new FormData(options)) if (form.elements[name].type !== "checkbox") form.elements[name].value = value;
  for (const labelled of form.querySelectorAll("[id]")) {
    const fresh = `${labelled.id}-${uploads.children.length}-${Date.now()}`;
    form.querySelector(`[for="${labelled.id}"]`)?.setAttribute("for", fresh);
    labelled.id = fresh;
  }
  const columns = made("div", { class: "wide columns" }, made("p", { class: "quiet", role: "status" }, "Looking at the columns…"));
  form.querySelector("p.wide.quiet").replaceWith(columns);
  form.append(made("p", { class: "actions wide" }, made("button", { class: "main" }, "Import again")));
  form.addEventListener("submit", (event) => { event.preventDefault(); parts.item.remove(); queue(file, form); });
  if (!open) form.elements.replace.checked = true;
  const fold = made("details", {}, made("summary", {}, "Import settings"), form);
  fold.addEventListener("toggle", () => showColumns(file, columns, open), { once: true });
  parts.below.append(fold);
  fold.open = open;
}

// With `propose` the columns that likely mean what the file lacks are picked already.
async function showColumns(file, place, propose) {
  try {
    const query = new URLSearchParams({ file: file.name, preview: "1" });
    const { job } = await uploaded(`/api/uploads?${query}`, file, () => {});
    const seen = await followed(job.number, () => {});
    if (seen.state !== "done") throw new Error(seen.message);
    const { columns, rows, guesses, likely } = seen.answer;
    const list = (name) => made("label", {}, `${name} `, made("select", { name: `column:${name}`, "aria-label": name },
      made("option", { value: "" }, guesses[name] ? `as guessed: ${visible(guesses[name])}` : "none"),
      ...columns.map((column) => made("option", { value: column, selected: propose && likely[name] === column }, visible(column)))));
    const cells = (tag, row) => made("tr", {}, ...row.map((text) => made(tag, {}, visible(text))));
    place.replaceChildren(
      made("fieldset", { class: "picks" }, made("legend", {}, "Columns"), ...page.names.map(list)),
      made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `The first rows of ${visible(file.name)}` },
        made("table", {}, made("caption", {}, `The first ${rows.length} rows`), made("thead", {}, cells("th", columns)), made("tbody", {}, ...rows.map((row) => cells("td", row))))),
    );
  } catch (fault) {
    place.replaceChildren(made("p", { class: "fault", role: "alert" }, fault.message));
  }
}

async function add(parts, file, form) {
  const path = uploadPath(file, form);
  const stop = new AbortController();
  parts.cancel.onclick = () => stop.abort();
  const refusal = refusalOf(file);
  parts.what.textContent = "uploading";
  try {
    if (refusal) throw new Error(refusal);
    const { job } = await uploaded(path, file, (done, total) => { parts.bar.max = total; parts.bar.value = done; }, stop.signal);
    await follow(parts, job.number);
    offerAgain(parts, file, false);
  } catch (fault) {
    finished(parts, "not added");
    parts.below.append(made("p", { class: "fault", role: "alert" }, fault.message));
    if (!refusal) offerAgain(parts, file, /column|--x|kind/.test(fault.message));
  }
}

let last = Promise.resolve();

function queue(file, form = options) {
  const parts = itemFor(visible(file.name));
  last = last.then(() => add(parts, file, form));
}

async function addDemo(button) {
  const parts = itemFor("The bundled example");
  button.disabled = true;
  try {
    const { job } = await sent("POST", "/api/demo");
    await follow(parts, job.number);
  } catch (fault) {
    finished(parts, fault.message);
    button.disabled = false;
  }
}

document.getElementById("files").addEventListener("change", (event) => {
  for (const file of event.target.files) queue(file);
  event.target.value = "";
});

const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
let over = 0;
const dropping = (change) => { over = Math.max(0, over + change); document.body.classList.toggle("dropping", over > 0); };
addEventListener("dragenter", (event) => { if (carriesFiles(event)) { event.preventDefault(); dropping(1); } });
addEventListener("dragover", (event) => { if (carriesFiles(event)) event.preventDefault(); });
addEventListener("dragleave", (event) => { if (carriesFiles(event)) dropping(-1); });
addEventListener("drop", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  dropping(-over);
  for (const file of event.dataTransfer.files) queue(file);
});

// Times as the reader's clock has them.
function localTimes() {
  for (const time of list.querySelectorAll("time")) {
    time.title = time.textContent;
    const when = new Date(time.dateTime);
    const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
    time.textContent = when.toLocaleString([], { month: "short", day: "numeric", ...year, hour: "numeric", minute: "2-digit" });
  }
}

localTimes();
if (chosen.length || list.querySelector("#compare")) showChosen();

// The list of runs: uploads, finding, choosing for comparison, editing, deleting.
import { followed, made, pageData, renewed, say, sent, uploaded, visible } from "./requests.js";

const page = pageData();
const list = document.getElementById("list");
const uploads = document.getElementById("uploads");
const finding = document.getElementById("finding");
let chosen = [...page.chosen];

const counted = new Intl.NumberFormat("en");
const listed = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

// Choosing: the order of ticking is kept, as the first is the baseline.

function nameOf(id) {
  return list.querySelector(`tr[data-run="${CSS.escape(id)}"] th a`)?.textContent ?? id;
}

function showChosen() {
  for (const box of list.querySelectorAll("input[name=run]")) box.checked = chosen.includes(box.value);
  const told = list.querySelector("#chosen");
  if (told) {
    const [first, ...others] = chosen.map(nameOf);
    list.querySelector("#compare").disabled = chosen.length < 2;
    told.textContent = !first ? "Tick two or more runs to compare them; the first is the baseline."
      : others.length ? `${first} is the baseline; against it ${others.join(", ")}.` : `${first} is the baseline; tick another.`;
  }
  remember();
}

function asked() {
  const query = new URLSearchParams(finding ? [...new FormData(finding)].filter(([, value]) => value) : []);
  if (query.get("order") === "newest") query.delete("order");
  for (const id of chosen) query.append("run", id);
  return query;
}

function remember() {
  const query = asked().toString();
  history.replaceState(null, "", query ? `/runs?${query}` : "/runs");
}

list.addEventListener("change", (event) => {
  if (!event.target.matches("input[name=run]")) return;
  const { value, checked } = event.target;
  chosen = chosen.filter((id) => id !== value);
  if (checked) chosen.push(value);
  showChosen();
});

list.addEventListener("submit", (event) => {
  event.preventDefault();
  if (chosen.length > 1) location.assign(`/compare?${new URLSearchParams(chosen.map((id) => ["run", id]))}`);
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
    document.getElementById("removing-name").textContent = nameOf(id);
    opened(removing, id);
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

for (const dialog of [editing, removing]) {
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
  const id = removing.dataset.run;
  const name = nameOf(id);
  submitted(removing, event, () => sent("DELETE", `/api/runs/${id}`), () => {
    chosen = chosen.filter((one) => one !== id);
    showChosen();
    if (!list.querySelector("tbody tr")) { location.assign("/runs"); return; }
    document.getElementById("main").focus();
    say(`${name} was deleted`);
  });
});

// Uploads, one after the other.

const options = document.getElementById("reading-options");

function uploadPath(file, form) {
  const query = new URLSearchParams({ file: file.name });
  for (const [name, value] of new FormData(form)) {
    if (!value || value === "error") continue;
    if (name === "tags") listed(value).forEach((tag) => query.append("tag", tag));
    else if (name === "map") listed(value).forEach((pair) => query.append("map", pair));
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

// The same file again, read otherwise: the browser still has it.
function offerAgain(parts, file, message) {
  const form = options.cloneNode(true);
  form.removeAttribute("id");
  for (const [name, value] of new FormData(options)) if (form.elements[name].type !== "checkbox") form.elements[name].value = value;
  for (const labelled of form.querySelectorAll("[id]")) {
    const fresh = `${labelled.id}-${uploads.children.length}-${Date.now()}`;
    form.querySelector(`[for="${labelled.id}"]`)?.setAttribute("for", fresh);
    form.querySelector(`[aria-describedby="${labelled.id}"]`)?.setAttribute("aria-describedby", fresh);
    labelled.id = fresh;
  }
  form.append(made("p", { class: "actions wide" }, made("button", { class: "main" }, "Try again")));
  form.addEventListener("submit", (event) => { event.preventDefault(); parts.item.remove(); queue(file, form); });
  parts.below.append(made("details", { open: /column|--x|kind/.test(message) }, made("summary", {}, "Import settings"), form));
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
  } catch (fault) {
    finished(parts, "not added");
    parts.below.append(made("p", { class: "fault", role: "alert" }, fault.message));
    if (!refusal) offerAgain(parts, file, fault.message);
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
    time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  }
}

localTimes();
if (chosen.length || list.querySelector("#compare")) showChosen();

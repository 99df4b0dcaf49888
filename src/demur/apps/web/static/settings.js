// Settings: what new results are made with, colours, kept results, and the work under way.
import { pageData, renewed, say, sent } from "./requests.js";

const page = pageData();
const form = document.getElementById("preferences");
const fault = form.querySelector(".fault");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, Number(value)]));
  try {
    await sent("PATCH", "/api/settings", given);
    fault.hidden = true;
    say("Saved");
    saved();
  } catch (refusal) {
    fault.textContent = refusal.message;
    fault.hidden = false;
  }
});

function saved() {
  const button = form.querySelector("button.main");
  button.textContent = "Saved";
  form.addEventListener("input", () => { button.textContent = "Save"; }, { once: true });
}

document.getElementById("defaults").addEventListener("click", () => {
  for (const [name, value] of Object.entries(page.defaults)) form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
});

document.getElementById("theme").addEventListener("change", (event) => {
  const { value } = event.target;
  document.cookie = `demur_theme=${value}; path=/; samesite=lax; max-age=${value ? 31536000 : 0}`;
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  document.querySelector("meta[name=color-scheme]").content = value || "light dark";
});

document.getElementById("facts").addEventListener("click", async (event) => {
  if (event.target.id !== "clear") return;
  try {
    const { removed } = await sent("DELETE", "/api/cache");
    await renewed("#facts");
    say(`${removed} kept results were removed`);
  } catch (refusal) {
    say(refusal.message);
  }
});

// The work under way is looked at again while there is some, and while somebody is looking.
const jobs = document.getElementById("jobs");

jobs.addEventListener("click", async (event) => {
  const row = event.target.closest("[data-cancel]")?.closest("[data-job]");
  if (!row) return;
  await sent("DELETE", `/jobs/${row.dataset.job}`).catch((refusal) => say(refusal.message));
  await renewJobs();
});

async function renewJobs() {
  const focused = document.activeElement.closest?.("[data-job]")?.dataset.job;
  const got = await renewed("#jobs");
  jobs.dataset.underWay = got.getElementById("jobs").dataset.underWay;
  if (focused) jobs.querySelector(`[data-job="${CSS.escape(focused)}"] button`)?.focus();
}

setInterval(() => {
  if (document.visibilityState === "visible" && jobs.dataset.underWay !== "0") renewJobs().catch((refusal) => say(refusal.message));
}, 1000);

// The wizard's page: what the system sees, and what the system could say.
import { made, pageData, say } from "/static/requests.js";
import { Channel, notices } from "./channel.js";

const constants = pageData();
const at = (id) => document.getElementById(id);
const [state, lines, heard, search, list, slots, available, training, clock] = ["state", "lines", "heard", "search", "responses", "slots", "available", "training", "clock"].map(at);
let shown = {};
let begun = 0;
let asked = "";

const channel = new Channel("wizard", { view, ...notices() });

const STATES = { training: "Training", ready: "Waiting for a dialogue", talking: "In a dialogue" };

function view(next) {
  at("fault").hidden = true;
  if (next.stage === "talking" && shown.stage !== "talking") at("about").open = false; // what is heard comes first
  shown = next;
  available.checked = next.available;
  available.disabled = next.stage === "training";
  state.textContent = next.stage === "ready" && !next.available ? "Tick “Take dialogues” when you are ready" : next.away ? "The participant is away" : STATES[next.stage];
  document.title = next.open ? `• ${constants.title}` : constants.title;
  if (next.stage === "training" && !next.training.done) at("about").open = true;
  showTraining(next.stage === "talking" ? null : next.training);
  const said = (next.lines ?? []).map((line) => made("p", { class: line.who }, line.text || "(nothing was heard)"));
  lines.replaceChildren(...said);
  lines.hidden = next.stage === "training";
  lines.scrollTop = lines.scrollHeight;
  showHeard(next.stage === "training" ? next.heard : next.open?.heard);
  const key = next.stage === "training" ? `t${next.training.done}` : next.open ? `${next.dialogue}/${next.open.turn}` : "";
  if (key !== asked) {
    asked = key;
    begun = performance.now();
    search.value = "";
    slots.hidden = true;
    if (key && next.open) say(`Heard: ${next.open.heard.text || "nothing"}`);
  }
  showClock();
  showResponses();
}

function showHeard(input) {
  heard.hidden = !input;
  if (!input) return;
  const share = (one) => (one.confidence === undefined ? [] : [" ", made("span", { class: "share" }, `${(100 * one.confidence).toFixed(one.confidence < 0.0995 ? 1 : 0)} %`)]);
  heard.replaceChildren(made("strong", {}, "Heard"), made("ol", {}, ...input.nbest.map((one) => made("li", {}, one.text || "(nothing)", ...share(one)))));
}

// How long the participant has waited; with a fixed delay, how long there is until the answer is late.
function showClock() {
  clock.hidden = !shown.open;
  if (!shown.open) return;
  const seconds = (performance.now() - begun) / 1000;
  const left = constants.delay === null ? null : constants.delay - seconds;
  clock.textContent = left === null ? `${Math.floor(seconds)} s` : left > 0 ? `${Math.ceil(left)} s left` : "late";
  clock.classList.toggle("late", left !== null && left <= 0);
}
setInterval(showClock, 250);

function showTraining(told) {
  training.hidden = !told;
  if (!told) return;
  const percent = (value) => (value === null ? "–" : `${Math.round(100 * value)} %`);
  const rows = told.shown.map((one, place) => made("tr", {}, made("th", { scope: "row" }, `Round ${place + 1}`), made("td", { class: "n" }, `${one.answers} of ${told.items}`), made("td", { class: "n" }, percent(one.right)), made("td", { class: "n" }, percent(one.changed)), made("td", { class: "n" }, `${one.seconds} s`)));
  const head = made("tr", {}, ...["", "answered", "best response", "changed since the round before", "median time"].map((text) => made("th", { scope: "col", class: text ? "n" : "" }, text)));
  const verdict = !told.finished ? "" : told.shown.length < 2 ? "One round shows no changes: train another to see whether your answers settle." : told.settled ? "Your answers have settled." : "Your answers still change from round to round. Read the instructions again and train another round.";
  const again = made("button", { type: "button" }, "Train another round");
  again.addEventListener("click", () => channel.send("train again"));
  training.replaceChildren(made("p", {}, `Training: ${told.done} of ${told.of} answers. ${verdict}`), ...(told.finished ? [made("p", { class: "actions" }, again)] : []), ...(rows.length ? [made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Training" }, made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows)))] : []));
}

// The choices: responses of the study, or what the system can carry out where only understanding is asked for.
function choices() {
  if (shown.system) return Object.entries(constants.labels[shown.system] ?? {}).map(([id, text]) => ({ id, text: `${id}: ${text}`, slots: [], key: constants.responses.find((one) => one.id === id)?.key ?? null, group: "" }));
  return constants.responses;
}

const canAnswer = () => Boolean(shown.open) || shown.stage === "training";

function showResponses() {
  const ready = canAnswer();
  search.disabled = !ready;
  for (const one of document.querySelectorAll("#free textarea, #free button")) one.disabled = !shown.open || Boolean(shown.system);
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = choices().filter((one) => words.every((word) => `${one.id} ${one.text}`.toLowerCase().includes(word)));
  let group = "";
  const items = found.flatMap((one) => {
    const button = made("button", { type: "button", "data-id": one.id, disabled: !ready }, ...(one.key ? [made("kbd", {}, one.key)] : []), made("span", {}, one.text));
    button.addEventListener("click", () => choose(one, "choose"));
    const title = one.group && one.group !== group ? [made("li", { class: "group" }, one.group)] : [];
    group = one.group;
    return [...title, made("li", {}, button)];
  });
  list.replaceChildren(...(items.length ? items : [made("li", { class: "quiet" }, "No response has these words.")]));
}

function choose(one, how) {
  if (!canAnswer()) return;
  if (shown.open) channel.send("click", { what: how, value: one.id });
  if (!one.slots.length || shown.stage === "training") { reply(one, {}); return; }
  slots.hidden = false;
  const fields = one.slots.map((slot) => {
    const values = constants.slots[slot];
    const field = Array.isArray(values) ? made("select", { id: `slot-${slot}`, name: slot }, ...values.map((value) => made("option", {}, value))) : made("input", { id: `slot-${slot}`, name: slot, type: "text", maxlength: 100, required: true, autocomplete: "off" });
    field.addEventListener("change", () => channel.send("click", { what: "slot", value: `${slot}=${field.value}`.slice(0, 200) }));
    return made("p", {}, made("label", { for: `slot-${slot}` }, slot), field);
  });
  slots.replaceChildren(made("p", { class: "wide" }, one.text), ...fields, made("p", { class: "wide actions" }, made("button", { class: "main" }, "Send"), made("button", { type: "button" }, "Back")));
  slots.onsubmit = (event) => { event.preventDefault(); reply(one, Object.fromEntries(new FormData(slots))); };
  slots.querySelector("button[type=button]").onclick = () => { slots.hidden = true; channel.send("click", { what: "clear", value: one.id }); };
  slots.querySelector("select, input").focus();
}

function reply(one, filled) {
  slots.hidden = true;
  if (shown.stage === "training") {
    channel.send("train", { item: shown.item, response: one.id, seconds: (performance.now() - begun) / 1000 });
    return;
  }
  const { turn, given } = shown.open;
  channel.send("reply", { dialogue: shown.dialogue, turn, given, response: one.id, slots: filled });
}

let typing = 0;
search.addEventListener("input", () => {
  showResponses();
  clearTimeout(typing);
  typing = setTimeout(() => { if (search.value) channel.send("click", { what: "search", value: search.value.slice(0, 200) }); }, 400);
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); list.querySelector("button")?.click(); }
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=checkbox]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); return; }
  const one = choices().find((other) => other.key === event.key);
  if (one) { event.preventDefault(); choose(one, "key"); }
});
at("free")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("text").value.trim();
  if (!text || !shown.open) return;
  const { turn, given } = shown.open;
  channel.send("reply", { dialogue: shown.dialogue, turn, given, text });
  at("text").value = "";
});
available.addEventListener("change", () => channel.send("available", { on: available.checked }));

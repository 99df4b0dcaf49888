// The experimenter's page: the study as it runs.
import { made, pageData } from "/static/requests.js";
import { Channel, notices } from "./channel.js";

const constants = pageData();
const paused = document.getElementById("paused");
const channel = new Channel("experimenter", { view, ...notices() });

function table(place, columns, rows, empty) {
  const numeric = columns.map((_, at) => at > 0 && rows.length > 0 && rows.every((cells) => typeof cells[at] === "number"));
  const head = made("tr", {}, ...columns.map((text, at) => made("th", { scope: "col", class: numeric[at] ? "n" : "" }, text)));
  const body = rows.map((cells) => made("tr", {}, ...cells.map((cell, at) => (at ? made("td", { class: typeof cell === "number" ? "n" : "" }, typeof cell === "object" ? cell : String(cell)) : made("th", { scope: "row" }, String(cell))))));
  document.getElementById(place).replaceChildren(rows.length ? made("table", {}, made("thead", {}, head), made("tbody", {}, ...body)) : made("p", { class: "quiet" }, empty));
}

function ending(id) {
  const one = made("button", { type: "button" }, "End");
  one.setAttribute("aria-label", `End ${id}`);
  one.addEventListener("click", () => channel.send("end", { dialogue: id }));
  return one;
}

function view(next) {
  paused.checked = next.paused;
  const fault = document.getElementById("fault");
  fault.textContent = next.fault ? `Events cannot be stored: ${next.fault}` : "";
  fault.hidden = !next.fault;
  table("conditions", ["performer", constants.x, "begun", "ended"], next.conditions.map((one) => [one.performer, one.level, one.opened, one.ended]), "");
  table("live", ["dialogue", "participant", "performer", "wizard", constants.x, "state", "turns", ""], next.live.map((one) => [one.id, one.participant, one.performer, one.wizard || "–", one.level, one.state, one.turns, ending(one.id)]), "None at the moment.");
  const trained = (one) => (one ? `${one.done} of ${one.of}${one.finished && one.shown.length > 1 ? (one.settled ? ", settled" : ", still changing") : ""}` : "–");
  table("wizards", ["wizard", "connected", "takes dialogues", "dialogue", "dialogues so far", "training"], next.wizards.map((one) => [one.name, one.connected ? "yes" : "no", one.available ? "yes" : "no", one.dialogue || "–", one.dialogues, trained(one.training)]), "No wizards in this study.");
  const known = next.wizards.filter((one) => one.dialogues).map((one) => one.name);
  document.getElementById("lone").textContent = known.length === 1 ? `${known[0]} is the only wizard so far: the band says how participants differ, and nothing of other wizards.` : "";
  table("people", ["participant", "stage", "connected", "conversation", "completion code"], next.people.map((one) => [one.id, one.stage, one.connected ? "yes" : "no", one.dialogue ? `${one.dialogue} of ${one.of}` : "–", one.code || "–"]), "Nobody yet. Send them the link above.");
  table("violations", ["rule", "times"], Object.entries(next.violations), "None so far.");
}

paused.addEventListener("change", () => channel.send("pause", { on: paused.checked }));
document.getElementById("draw").addEventListener("click", async () => {
  const figure = document.getElementById("benchmark");
  const answer = await fetch("/benchmark.svg", { headers: { accept: "application/json" } });
  const fault = document.getElementById("fault");
  fault.hidden = answer.ok;
  if (!answer.ok) { fault.textContent = (await answer.json()).error; return; }
  const image = figure.querySelector("img");
  if (image.src) URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(await answer.blob());
  figure.hidden = false;
});

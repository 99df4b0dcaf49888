// What judging and settling share: one answer at a time, labels by button or key, and what was said kept before it goes on.
import { made, pageData, say, sent, visible } from "/static/requests.js";

const AGAIN = 1500; // milliseconds until something that did not reach the server is sent again

const place = (id) => document.getElementById(id);

// An id of its own for each thing said, so that sending it twice says it once.
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const parts = (shown) => {
  const rows = shown.map(({ name, text }, number) => made("div", { class: number === shown.length - 1 ? "answer" : false },
    made("dt", {}, visible(name)),
    made("dd", {}, text === null ? made("span", { class: "quiet" }, "nothing") : visible(text))));
  return made("dl", { class: "shown" }, ...rows);
};

// Sends until the server has it, and says meanwhile that it has not; what the server refuses is refused for good.
async function keptBy(path, body) {
  for (;;) {
    try {
      const state = await sent("POST", path, body);
      place("fault").hidden = true;
      return state;
    } catch (fault) {
      const away = fault.message.startsWith("the server does not answer");
      place("fault").textContent = away ? "Not saved yet: the server does not answer. Trying again …" : fault.message;
      place("fault").hidden = false;
      if (!away) return null;
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
}

// `send` and `take` are the paths of saying and undoing, `about` what both carry, `words` what is said of a state.
export function desk({ send, take, about, words, drawn = () => {} }) {
  let state = pageData();
  let busy = false;

  function draw() {
    const over = state.item === null;
    for (const [id, hidden] of [["item", over], ["choice", over], ["finished", !over]]) place(id).hidden = hidden;
    place("finished").textContent = words.finished(state);
    if (!over) place("item").replaceChildren(parts(state.shown));
    Object.assign(place("bar"), { max: Math.max(state.total, 1), value: state.done });
    place("count").textContent = words.count(state);
    place("undo").disabled = state.last === null;
    place("last").textContent = state.last === null ? "" : `Last: ${visible(state.last)}`;
    drawn(state);
  }

  async function tell(path, body, spoken) {
    if (busy) return;
    busy = true;
    document.body.classList.add("saving-judgement");
    const next = await keptBy(path, { ...about(state), ...body, request: newId() });
    busy = false;
    document.body.classList.remove("saving-judgement");
    if (next === null) return;
    state = next;
    draw();
    say(`${spoken}. ${words.count(state)}.`);
  }

  const judge = (label) => state.item !== null && tell(send, { item: state.item, label, ...words.with() }, `Saved: ${visible(label)}`);
  const undo = () => state.last !== null && tell(take, {}, "Undone");

  place("labels").addEventListener("click", (event) => {
    const button = event.target.closest("[data-label]");
    if (button) judge(button.dataset.label);
  });
  place("undo").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.target.closest("input, textarea, select")) return;
    const key = event.key.toLowerCase();
    const number = Number(key) - 1;
    const label = state.labels.find((one, at) => at === number || (one.key && one.key === key));
    if (key === "z") undo();
    else if (label) judge(label.name);
    else return;
    event.preventDefault();
  });
}

// The page on which the lead settles what judges disagree on.
import { made, renewed, visible } from "/static/requests.js";
import { desk } from "./desk.js";

const number = (count) => count.toLocaleString("en");
const note = document.getElementById("note");

const times = ([name, count]) => `${visible(name)}${count > 1 ? ` (${count} times)` : ""}`;

desk({
  send: "/api/adjudications",
  take: "/api/reopen",
  about: () => ({}),
  words: {
    count: (state) => `${number(state.done)} of ${number(state.total)} settled`,
    finished: (state) => (state.total ? "Every disagreement is settled." : "Judges do not disagree on any answer yet."),
    with: () => ({ note: note.value.trim() }),
  },
  drawn: (state) => {
    const given = document.getElementById("given");
    given.hidden = state.item === null;
    given.replaceChildren("Judges said: ", made("strong", {}, state.given.map(times).join(", ")));
    note.value = "";
    renewed("#settled").catch(() => {});
  },
});

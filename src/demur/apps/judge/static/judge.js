// The page of a judge.
import { desk } from "./desk.js";

const number = (count) => count.toLocaleString("en");

desk({
  send: "/api/judgements",
  take: "/api/undo",
  about: (state) => ({ judge: state.judge }),
  words: {
    count: (state) => `${number(state.done)} of ${number(state.total)} judged`,
    finished: (state) => (state.total ? "All your answers are judged. Thank you; you can close this page." : "No answers were dealt to you."),
    with: () => ({}),
  },
});

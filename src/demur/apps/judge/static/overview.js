// Progress and agreement, looked at again while somebody is looking.
import { renewed } from "/static/requests.js";

const EVERY = 4000;

setInterval(() => {
  if (document.visibilityState === "visible") renewed("#overview").catch(() => {}); // the next time will do
}, EVERY);

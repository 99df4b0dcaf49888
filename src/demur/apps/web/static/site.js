// What every page does: draw its figures, and follow the work that it waits for.
import { drawAll } from "./figures.js";
import { followed, say, sent } from "./requests.js";

async function awaitResult(place) {
  const number = place.dataset.job;
  const [what, bar, again, cancel] = [".what", "progress", ".again", ".cancel"].map((one) => place.querySelector(one));
  const ended = (text) => { what.textContent = text; bar.hidden = true; cancel.hidden = true; again.hidden = false; };
  cancel.addEventListener("click", () => sent("DELETE", `/jobs/${number}`).catch((fault) => ended(fault.message)));
  again.addEventListener("click", async () => {
    await sent("DELETE", `/jobs/${number}`).catch(() => {});
    location.reload();
  });
  if (place.dataset.state === "failed") return;
  try {
    const job = await followed(number, (now) => {
      what.textContent = now.state === "waiting" ? "Waiting for other work to end" : now.what || "Starting";
      if (now.total > 0) { bar.max = now.total; bar.value = now.done; }
    });
    if (job.state === "done") location.reload();
    else ended(job.message);
  } catch (fault) {
    ended(fault.message);
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link was copied");
      button.textContent = "Copied";
    } catch {
      say("The browser does not let pages copy; the link is in the address bar");
    }
  });
}

for (const place of document.querySelectorAll(".waiting[data-job]")) awaitResult(place);
setTimeout(() => drawAll()); // after what the page's own script draws, which stands at the top

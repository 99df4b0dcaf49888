// Buttons that add an example which comes with the package, and then show it.
import { say, sent } from "./requests.js";

for (const button of document.querySelectorAll("[data-example]")) {
  const fault = button.closest("main").querySelector("[data-example-fault]");
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("Adding the example.");
    try {
      const added = await sent("POST", `/api/examples/${encodeURIComponent(button.dataset.example)}`, {});
      location.assign(added.page);
    } catch (refusal) {
      fault.textContent = refusal.message;
      fault.hidden = false;
      button.disabled = false;
    }
  });
}

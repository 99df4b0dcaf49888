import { pageData, sent } from "/static/requests.js";

const { token, external } = pageData();
const button = document.getElementById("join");
button.addEventListener("click", async () => {
  button.disabled = true;
  try {
    location.assign((await sent("POST", "/join", { token, external })).onward);
  } catch (fault) {
    const place = document.querySelector(".fault");
    place.textContent = fault.message;
    place.hidden = false;
    button.disabled = false;
  }
});

// The participant's page: it shows what the server sends, the same whoever answers.
import { made, pageData, say } from "/static/requests.js";
import { Channel, notices } from "./channel.js";
import { answersOf, questions } from "./questions.js";

const constants = pageData();
const stage = document.getElementById("stage");
const progress = document.getElementById("progress");
const leave = document.getElementById("leave");
const leaving = document.getElementById("leaving");
let shown = {};
let spoken = 0;
let recorder = null;

const channel = new Channel("participant", { view, ...notices() });

function view(next) {
  document.getElementById("fault").hidden = true;
  const same = shown.stage === next.stage && shown.goal === next.goal;
  progress.textContent = next.progress ? `Conversation ${next.progress.number} of ${next.progress.of}` : "";
  leave.hidden = ["done", "declined", "withdrawn"].includes(next.stage);
  if (same && next.stage === "talking") talk(next);
  else if (!same || next.stage !== shown.stage) {
    spoken = next.lines?.length ?? 0;
    stage.replaceChildren(...STAGES[next.stage](next));
    if (next.stage === "talking") { spoken = 0; talk(next); }
    (stage.querySelector("[autofocus]") ?? stage.querySelector("h1"))?.focus();
  }
  shown = next;
}

const heading = (text) => made("h1", { tabindex: "-1" }, text);
const button = (text, act, kind = "main") => {
  const one = made("button", { type: "button", class: kind }, text);
  one.addEventListener("click", () => { one.disabled = true; act(); setTimeout(() => { one.disabled = false; }, 3000); });
  return one;
};

function form(name, parts, act) {
  const one = made("form", { class: "stage", "aria-label": name }, ...parts, made("p", { class: "actions" }, made("button", { class: "main" }, "Continue")));
  one.addEventListener("submit", (event) => { event.preventDefault(); act(one); });
  return one;
}

const STAGES = {
  consent: (next) => [
    heading("Before you begin"),
    made("p", { class: "consent stage" }, next.consent),
    made("p", { class: "actions" }, button("I agree", () => channel.send("consent", { agree: true })), button("I do not agree", () => channel.send("consent", { agree: false }), "")),
  ],
  before: (next) => questionnaire("before", "A few questions", next),
  after: (next) => questionnaire("after", "Some last questions", next),
  briefing: (next) => [
    heading("Your task"),
    made("p", { class: "goal stage" }, next.goal),
    made("p", {}, "Talk to the guide until you have found out, or until you no longer want to. Then end the conversation."),
    made("p", { class: "actions" }, button("Start the conversation", () => channel.send("begin"))),
  ],
  waiting: (next) => [heading("Connecting to the guide"), made("p", { class: "goal stage" }, next.goal), made("p", { role: "status" }, "Please wait. This may take a minute.")],
  talking: (next) => [
    heading("Conversation"),
    made("p", { class: "goal stage" }, next.goal),
    made("div", { class: "stage" }, made("div", { id: "lines", class: "lines", role: "log", tabindex: "0", "aria-label": "The conversation" }), speaking(), made("p", { class: "actions" }, button("End the conversation", () => channel.send("finish"), ""))),
  ],
  report: (next) => [
    heading("How did it go?"),
    made("p", {}, next.ended === "ended" ? "The conversation was ended." : next.ended === "minutes" ? "The time for this conversation is over." : next.ended === "turns" ? "This conversation has had all its turns." : "You ended the conversation."),
    form("How did it go?", [...asked(next), ...questions(next.questions)], (one) => {
      const answers = answersOf(one, next.questions);
      const given = new FormData(one).get("task-answer");
      if (!next.asked) channel.send("report", { answers });
      else if (next.asked.kind === "said") channel.send("report", { completed: given === "yes", answers });
      else channel.send("report", { answer: given ?? "", answers });
    }),
  ],
  done: (next) => [heading("Done"), made("p", { class: "consent stage" }, next.thanks), made("p", {}, "Your completion code is"), made("p", { class: "code" }, next.code)],
  declined: () => [heading("You do not take part"), made("p", {}, "Nothing of you was kept but that you did not agree. You can close this page.")],
  withdrawn: () => [heading("You have left the study"), made("p", {}, "What you typed is not used. You can close this page.")],
};

const questionnaire = (name, title, next) => [
  heading(title),
  form(title, questions(next.questions), (one) => channel.send("questionnaire", { stage: name, answers: answersOf(one, next.questions) })),
];

function asked({ asked: one }) {
  if (!one) return [];
  const choices = one.kind === "said" ? [["yes", "Yes"], ["no", "No"]] : (one.choices ?? []).map((text) => [text, text]);
  if (one.kind === "text") return [made("p", { class: "question" }, made("label", { for: "task-answer" }, one.text), made("input", { id: "task-answer", name: "task-answer", type: "text", maxlength: 400, autocomplete: "off" }))];
  return [made("fieldset", { class: "question" }, made("legend", {}, one.text), ...choices.map(([value, text]) => made("p", {}, made("label", { class: "check" }, made("input", { type: "radio", name: "task-answer", value, required: true }), text))))];
}

function speaking() {
  if (constants.input === "speech") {
    const hold = made("button", { type: "button", class: "main", id: "record", "aria-pressed": "false" }, "Speak");
    hold.addEventListener("click", () => record(hold));
    return made("p", { class: "actions" }, hold, made("span", { id: "recording", role: "status" }));
  }
  const one = made("form", { class: "say" }, made("p", {}, made("label", { for: "text" }, "Say something"), made("input", { id: "text", name: "text", type: "text", maxlength: constants.longest, autocomplete: "off", autofocus: true })), made("button", { class: "main" }, "Send"));
  one.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = one.elements.text.value.trim();
    if (!text || shown.waiting) return;
    channel.send("say", { text });
    one.elements.text.value = "";
  });
  return one;
}

function talk(next) {
  const place = document.getElementById("lines");
  const hidden = constants.output === "speech" && !constants.captions;
  const lines = next.lines.map((line) => made("p", { class: line.who }, line.who === "guide" && hidden ? "(spoken)" : line.text || "(spoken)"));
  place.replaceChildren(...lines, ...(next.waiting ? [made("p", { class: "guide typing" }, "…")] : []));
  place.scrollTop = place.scrollHeight;
  for (const line of next.lines.slice(spoken)) if (line.who === "guide") utter(line.text);
  spoken = next.lines.length;
  for (const one of document.querySelectorAll("#text, .say button, #record")) one.disabled = next.waiting || next.left < 1;
  if (!next.waiting) document.getElementById("text")?.focus();
}

function utter(text) {
  if (constants.output !== "speech") { say(text); return; }
  const utterance = new SpeechSynthesisUtterance(text);
  const voice = speechSynthesis.getVoices().find((one) => one.name === constants.voice);
  if (voice) utterance.voice = voice;
  speechSynthesis.speak(utterance);
}

async function record(hold) {
  const status = document.getElementById("recording");
  if (recorder) {
    const sound = await recorder.stop();
    recorder = null;
    hold.textContent = "Speak";
    hold.setAttribute("aria-pressed", "false");
    status.textContent = "";
    try {
      const answer = await fetch("/audio", { method: "POST", headers: { "X-Demur": "1", "Content-Type": "audio/wav" }, body: sound });
      if (!answer.ok) status.textContent = (await answer.json()).error;
    } catch {
      status.textContent = "The recording did not arrive. Please say it again.";
    }
    return;
  }
  try {
    const { Recorder } = await import("./recording.js");
    recorder = await Recorder.start();
    hold.textContent = "Stop and send";
    hold.setAttribute("aria-pressed", "true");
    status.textContent = "Recording";
  } catch {
    status.textContent = "The microphone cannot be used. Please allow it in the browser.";
  }
}

leave.addEventListener("click", () => leaving.showModal());
document.getElementById("stay").addEventListener("click", () => leaving.close());
document.getElementById("leave-now").addEventListener("click", () => { leaving.close(); channel.send("withdraw"); });

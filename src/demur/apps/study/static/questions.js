// Questionnaires as fields of a form, and the answers in them.
import { made } from "/static/requests.js";

export function questions(items) {
  return items.map((one) => {
    const name = `q-${one.id}`;
    const common = { name, required: one.required };
    if (one.kind === "text") return made("p", { class: "question" }, made("label", { for: name }, one.text), made("textarea", { id: name, rows: 3, maxlength: 4000, ...common }));
    if (one.kind === "number") return made("p", { class: "question" }, made("label", { for: name }, one.text), made("input", { id: name, type: "number", step: "any", ...common }));
    const values = one.kind === "choice" ? one.labels : Array.from({ length: one.high - one.low + 1 }, (_, place) => one.low + place);
    const radios = values.map((value) => made("label", { class: "check" }, made("input", { type: "radio", value, ...common }), String(value)));
    if (one.kind === "scale" && one.labels.length === 2) { radios.unshift(made("span", { class: "quiet" }, one.labels[0])); radios.push(made("span", { class: "quiet" }, one.labels[1])); }
    return made("fieldset", { class: "question" }, made("legend", {}, one.text), made("div", { class: "scale" }, ...radios));
  });
}

export function answersOf(form, items) {
  const given = new FormData(form);
  const answers = {};
  for (const one of items) {
    const value = given.get(`q-${one.id}`);
    if (value === null || value === "") continue;
    answers[one.id] = one.kind === "scale" || one.kind === "number" ? Number(value) : value;
  }
  return answers;
}

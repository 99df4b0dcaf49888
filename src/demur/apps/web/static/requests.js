// Requests to this server: what changes something carries the header that only its own pages can send.

export class Refusal extends Error {}

const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]/gu;

// Text whose unseen characters can be seen, as the server writes it: none may turn what stands around it.
export const visible = (text) => text.replace(UNSEEN, (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

const read = (text) => JSON.parse(text, (_, value) => (typeof value === "string" ? visible(value) : value));

const reason = (status, body) => body?.error || `the server answered ${status}`;

async function answered(response) {
  const body = await response.text().then(read).catch(() => null);
  if (!response.ok && response.status !== 202) throw new Refusal(reason(response.status, body ?? {}));
  if (body === null) throw new Refusal("the server's answer cannot be read");
  return body;
}

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refusal("the server does not answer; is demur serve still running?");
  }
}

export const fetched = async (path, options = {}) => answered(await reached(path, { headers: { accept: "application/json" }, ...options }));

export async function sent(method, path, body) {
  const headers = { "X-Demur": "1", "Content-Type": "application/json" };
  return answered(await reached(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
}

// Sends a file, and tells how much of it has gone; `signal` breaks it off.
export function uploaded(path, file, told, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("X-Demur", "1");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => told(event.loaded, event.total);
    request.onload = () => answered(new Response(request.response, { status: request.status })).then(resolve, reject);
    request.onerror = () => reject(new Refusal("the upload was broken off; is demur serve still running?"));
    request.onabort = () => reject(new Refusal("the upload was cancelled"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

// Follows a job until it ends; `told` hears of each step.
export async function followed(number, told) {
  for (;;) {
    const job = await fetched(`/jobs/${number}.json`);
    told(job);
    if (["done", "failed", "cancelled"].includes(job.state)) return job;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

// Asks for a page of this server again and puts one part of it in the place of the same part here.
export async function renewed(selector, path = location.pathname + location.search, signal = undefined) {
  const response = await reached(path, { headers: { accept: "text/html" }, signal });
  if (!response.ok) throw new Refusal(reason(response.status));
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const [here, there] = [document, page].map((one) => one.querySelector(selector));
  here.replaceChildren(...[...there.childNodes].map((node) => document.importNode(node, true)));
  return page;
}

// An element with attributes and children; text is only ever text.
export function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function say(text) {
  document.getElementById("said").textContent = text;
}

export const pageData = () => JSON.parse(document.getElementById("page-data").textContent);

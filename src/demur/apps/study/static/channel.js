// The socket of a page: what is sent stays until the server has it on its disk, and is sent again after a cut or a reload.
const WAITING = "demur study waiting";

const name = () => [...crypto.getRandomValues(new Uint8Array(12))].map((one) => one.toString(16).padStart(2, "0")).join("");

export class Channel {
  constructor(role, { view, refused, closed, connected }) {
    Object.assign(this, { role, view, refused, closed, connected });
    this.key = `${WAITING} ${role}`;
    this.waiting = new Map(JSON.parse(sessionStorage.getItem(this.key) ?? "[]"));
    this.pause = 250;
    this.ended = false;
    this.open();
  }

  open() {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/${this.role}`);
    this.socket = socket;
    socket.onopen = () => {
      this.pause = 250;
      this.connected(true);
      for (const message of this.waiting.values()) socket.send(JSON.stringify(message));
    };
    socket.onmessage = (event) => this.take(JSON.parse(event.data));
    socket.onclose = () => {
      if (this.ended) return;
      this.connected(false);
      setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(2 * this.pause, 4000);
    };
  }

  take(frame) {
    if (frame.view) this.view(frame.view);
    if (frame.ack) this.forget(frame.ack);
    if (frame.refused && frame.again && this.waiting.has(frame.id)) {
      this.refused(frame.refused);
      setTimeout(() => { if (this.waiting.has(frame.id)) this.put(this.waiting.get(frame.id)); }, 1000);
    } else if (frame.refused) {
      this.forget(frame.id);
      this.refused(frame.refused);
    }
    if (frame.closed === "replaced" || frame.closed === "too fast") {
      this.ended = true;
      this.closed(frame.closed);
    }
  }

  send(kind, fields = {}) {
    const message = { kind, id: name(), ...fields };
    this.waiting.set(message.id, message);
    this.keep();
    this.put(message);
    return message.id;
  }

  put(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  forget(id) {
    this.waiting.delete(id);
    this.keep();
  }

  keep() {
    sessionStorage.setItem(this.key, JSON.stringify([...this.waiting]));
  }
}

// What pages show of the connection, and of what the server refuses.
export function notices() {
  const connection = document.getElementById("connection");
  const fault = document.getElementById("fault");
  const show = (place, text) => { place.textContent = text; place.hidden = !text; };
  return {
    connected: (on) => show(connection, on ? "" : "The connection is lost. It comes back by itself."),
    refused: (text) => show(fault, text),
    closed: (why) => show(connection, why === "replaced" ? "This page was opened in another window. Go on there, or reload this one." : "The connection was closed. Reload the page."),
  };
}

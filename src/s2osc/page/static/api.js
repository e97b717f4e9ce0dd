// Requests, and the acts that wait while there is no server.

const SECOND = 1000;
const MOST_FAILURES = 5;
export class Refused extends Error {}
class Failed extends Error {}

export async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

export async function send(method, path, body) {
  const answer = await fetch(path, {
    method, headers: { "content-type": "application/json" }, body: JSON.stringify(body ?? {}),
  });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

async function refusal(answer) {
  let text = `${answer.status}`;
  try { text = (await answer.json()).error ?? text; } catch { /* no words came with it */ }
  return answer.status < 500 ? new Refused(text) : new Failed(`The server failed (${text}); what was done before is safe.`);
}

export async function columns(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw await refusal(answer);
  const buffer = await answer.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const kinds = { "<i2": Int16Array, "<f4": Float32Array, "<i4": Int32Array, "|u1": Uint8Array };
  const found = {};
  let place = 4 + length;
  for (const [name, kind, n] of header) {
    found[name] = new kinds[kind](buffer, place, n);
    place += Math.ceil(found[name].byteLength / 8) * 8;
  }
  return found;
}

// Pictures one after another, each behind its row and size; ``found`` gets them as they come.
export async function pictures(path, found) {
  const answer = await fetch(path);
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.getReader(), types = { 0x89: "image/png", 0xff: "image/jpeg", 0x52: "image/webp" };
  let rest = new Uint8Array();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const bytes = new Uint8Array(rest.length + value.length);
    bytes.set(rest);
    bytes.set(value, rest.length);
    const view = new DataView(bytes.buffer);
    let place = 0;
    while (place + 8 <= bytes.length && place + 8 + view.getUint32(place + 4, true) <= bytes.length) {
      const picture = bytes.subarray(place + 8, place + 8 + view.getUint32(place + 4, true));
      found(view.getUint32(place, true), new Blob([picture], { type: types[picture[0]] }));
      place += 8 + picture.length;
    }
    rest = bytes.subarray(place);
  }
}

// Browsers on other machines have no crypto.randomUUID: these pages are not encrypted.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Acts in the order they were done. Each is kept here until the server has it on its disk; as each
// has a key of its own, sending one twice does no harm.
export class Outbox {
  constructor(name, { done, refused, changed }) {
    this.name = name;
    this.done = done;
    this.refused = refused;
    this.changed = changed;
    this.busy = false;
    this.online = true;
    try { this.acts = JSON.parse(localStorage.getItem(name) ?? "[]"); } catch { this.acts = []; }
    addEventListener("online", () => this.flush());
  }

  get waiting() { return this.acts.length; }

  add(act) {
    this.acts.push({ key: randomKey(), ...act });
    this.#keep();
    return this.flush();
  }

  async flush() {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.acts.length) {
        const [act] = this.acts;
        try {
          const { failed, ...body } = act;
          const answer = await send("POST", "/api/acts", body);
          this.online = true;
          this.acts.shift();
          this.#keep();
          this.done(act, answer);
        } catch (error) {
          // An answer that is no answer, time and again, is a defect of ours: do not stop all others.
          act.failed = (act.failed ?? 0) + (error instanceof Failed);
          if (error instanceof Refused || act.failed > MOST_FAILURES) {
            this.acts.shift();
            this.#keep();
            this.refused(act, error);
          } else {
            this.online = false;
            this.changed();
            setTimeout(() => this.flush(), SECOND);
            return;
          }
        }
      }
    } finally {
      this.busy = false;
      this.changed();
    }
  }

  #keep() {
    try { localStorage.setItem(this.name, JSON.stringify(this.acts)); } catch { /* it is in memory */ }
    this.changed();
  }
}

/** Enough of a browser for the page's modules without components: import it before them. */

const store = new Map();
globalThis.localStorage = {
  getItem: (key) => store.get(key) ?? null,
  setItem: (key, value) => void store.set(key, String(value)),
  removeItem: (key) => void store.delete(key),
};
const element = () => ({ append() {}, focus() {}, setAttribute() {}, style: {}, dataset: {} });
globalThis.document = {
  documentElement: { lang: "en", dataset: {} },
  cookie: "",
  hidden: false,
  body: element(),
  head: element(),
  addEventListener() {},
  createElement: element,
  getElementById: (id) => (id === "boot" ? { textContent: JSON.stringify({ user: { id: "u1", name: "A", email: "a@x.org" }, limits: { max_upload_bytes: 1e9, max_message_chars: 1e5 }, csrf_token: "t", conversation_id: null, settings: {} }) } : null),
  querySelector: () => null,
  querySelectorAll: () => [],
};
globalThis.location = { protocol: "http:", host: "x", origin: "http://x", pathname: "/", hash: "", search: "", assign() {} };
globalThis.history = {
  pushState: (_state, _title, address) => void (location.pathname = address.split("#")[0]),
  replaceState: (_state, _title, address) => void (location.pathname = address.split("#")[0]),
};
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.addEventListener = () => {};
const startTimer = globalThis.setTimeout;
// A notice goes after five seconds: node would wait for that after the last test.
globalThis.setTimeout = (...given) => startTimer(...given).unref();
globalThis.requestAnimationFrame = (f) => setTimeout(f);

/** Sockets that were made, with what was sent. */
export const sockets = [];
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() {
    this.readyState = 0;
    this.sent = [];
    sockets.push(this);
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {}
  open() {
    this.readyState = 1;
    this.onopen();
  }
};

/** What the server is asked, in order; each is answered by the test. */
export const asked = [];
globalThis.fetch = (address, init = {}) =>
  new Promise((resolve, reject) => {
    const answer = (body, status = 200, type = "basic") => resolve({ ok: status < 300, status, type, text: async () => JSON.stringify(body) });
    asked.push({ address, method: init.method ?? "GET", body: init.body && JSON.parse(init.body), answer, fail: () => reject(new TypeError("no network")), isAnswered: false });
  });

export const settled = async () => {
  for (let i = 0; i < 30; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** The oldest request like this that has no answer yet. */
export async function request(method, pattern) {
  for (let i = 0; i < 50; i += 1) {
    const found = asked.find((one) => !one.isAnswered && one.method === method && pattern.test(one.address));
    if (found) {
      found.isAnswered = true;
      return found;
    }
    await settled();
  }
  throw new Error(`not asked: ${method} ${pattern}; ${asked.map((one) => `${one.method} ${one.address}`)}`);
}

export const conversation = (id, more = {}) => ({
  id, branch: "b1", title: id, archived: false, temporary: false, folder: null, pinned: false, last_seq: 0, active_run: null,
  last_activity_at: "2026-01-01T00:00:00Z", message_count: 0, unread: false, waiting_calls: 0, ...more,
});

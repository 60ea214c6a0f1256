/**
 * The WebSocket: reconnects by itself and delivers frames in batches, so that a fast stream paints about thirty times a
 * second. The listener subscribes again in `onOpen`.
 */

const BATCH_MS = 33;
const PING_MS = 20_000;
const SILENCE_MS = 45_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
const SIGNED_OUT = 4401;
/** The user has too many connections or sends too many frames. */
const TOO_MANY = 4429;
const DOUBTS_EVERY = 3;
/** Show no banner for less: one quick reconnection takes about this long. */
const UNNOTICED_MS = 900;

/**
 * @typedef {{
 *   onFrames: (frames: any[]) => void,
 *   onState: (state: "connecting"|"open"|"lost") => void,
 *   onOpen: () => void,
 *   onDoubt: () => void,
 * }} Listener
 */

export class ChatSocket {
  /** @param {string} url @param {Listener} listener */
  constructor(url, listener) {
    this.url = url;
    this.listener = listener;
    /** @type {WebSocket|null} */
    this.socket = null;
    /** @type {any[]} */
    this.frames = [];
    this.attempts = 0;
    /** Whether the server has sent anything since the connection was opened. */
    this.isHeard = false;
    this.lastHeard = 0;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.batchTimer = undefined;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.retryTimer = undefined;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.lostTimer = undefined;
    setInterval(() => this.checkPulse(), PING_MS);
    addEventListener("online", () => this.connectNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.checkPulse());
  }

  connect() {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => this.opened();
    socket.onmessage = (event) => this.heard(JSON.parse(event.data));
    socket.onclose = (event) => this.closed(socket, event.code);
  }

  opened() {
    this.isHeard = false;
    this.lastHeard = Date.now();
    this.listener.onOpen();
    this.send({ type: "ping" });
  }

  /** Report the connection as open. A server may accept and close it at once, so only a frame proves that it works. */
  proved() {
    this.isHeard = true;
    this.attempts = 0;
    clearTimeout(this.lostTimer);
    this.lostTimer = undefined;
    this.listener.onState("open");
  }

  /** @param {any} frame */
  heard(frame) {
    if (!this.isHeard) this.proved();
    this.lastHeard = Date.now();
    if (frame.type === "pong") return;
    this.frames.push(frame);
    this.batchTimer ??= setTimeout(() => this.handOver(), BATCH_MS);
  }

  handOver() {
    this.batchTimer = undefined;
    this.listener.onFrames(this.frames.splice(0));
  }

  /** @param {WebSocket} socket @param {number} code */
  closed(socket, code) {
    if (socket !== this.socket) return;
    this.socket = null;
    this.lostTimer ??= setTimeout(() => this.listener.onState("lost"), UNNOTICED_MS);
    // Let the listener check the session: the sign-out may concern another device, or the reconnection was refused.
    if (code === SIGNED_OUT || (code !== TOO_MANY && this.attempts % DOUBTS_EVERY === 1)) this.listener.onDoubt();
    // The server would refuse a quick retry. If the user is still signed in, the listener reconnects after its check.
    const longest = code === SIGNED_OUT || code === TOO_MANY ? LONGEST_RETRY_MS : Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.attempts);
    this.attempts += 1;
    // Half of the delay is random, so that a thousand tabs do not reconnect at the same moment.
    this.retryTimer = setTimeout(() => this.connect(), longest * (0.5 + Math.random() / 2));
  }

  connectNow() {
    if (this.socket) return;
    clearTimeout(this.retryTimer);
    this.connect();
  }

  /** Check that the connection is alive: after a laptop slept, its socket may look open. */
  checkPulse() {
    if (!this.socket) return this.connectNow();
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.lastHeard < SILENCE_MS) return this.send({ type: "ping" });
    const silent = this.socket;
    this.closed(silent, 0);
    silent.close();
  }

  /** @param {Record<string, unknown>} frame dropped while disconnected, because `onOpen` sends everything again */
  send(frame) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }
}

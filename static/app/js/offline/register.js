/** Lets the service worker keep the offline page. Only where the browser has one: over TLS, or on this machine. */

const WORKER = "/service-worker.js";

/** @typedef {{createPolicy: (name: string, rules: object) => {createScriptURL: (address: string) => any}}} TrustedTypes */
const { trustedTypes } = /** @type {{trustedTypes?: TrustedTypes}} */ (globalThis);
const policy = trustedTypes?.createPolicy("service-worker", { createScriptURL: () => WORKER });

// Refused in private windows of some browsers: then they show their own page.
navigator.serviceWorker?.register(policy?.createScriptURL(WORKER) ?? WORKER, { scope: "/" }).catch(() => {});

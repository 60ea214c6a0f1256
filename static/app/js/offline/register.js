/** Registers the service worker that keeps the offline page. Browsers allow it only over TLS or on localhost. */

const WORKER = "/service-worker.js";

/**
 * @typedef {{createPolicy: (name: string, rules: object) => {createScriptURL: (address: string) => any}}} TrustedTypes
 */
const { trustedTypes } = /** @type {{trustedTypes?: TrustedTypes}} */ (globalThis);
const policy = trustedTypes?.createPolicy("service-worker", { createScriptURL: () => WORKER });

// Some browsers refuse this in private windows. Then they show their own offline page.
navigator.serviceWorker?.register(policy?.createScriptURL(WORKER) ?? WORKER, { scope: "/" }).catch(() => {});

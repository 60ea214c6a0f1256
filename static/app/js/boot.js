/** The values that the server embedded in the page. */

/**
 * @typedef {{settings: import("./settings/store.js").Settings, user: import("./state/types.js").User,
 *   conversation_id: string|null, csrf_token: string, limits: import("./state/types.js").Limits, version: string,
 *   product_name: string, retention_days: number, temporary_days: number, trash_days: number, operators_read: boolean,
 *   admin_url: string|null, logout_url: string, login_url: string}} Boot
 */

/** @returns {Boot} */
function readBoot() {
  const element = document.getElementById("boot");
  const given = JSON.parse(element?.textContent ?? "{}");
  return {
    product_name: "Palimpsest",
    retention_days: Number(document.querySelector("meta[name=retention-days]")?.getAttribute("content") ?? 0),
    temporary_days: Number(document.querySelector("meta[name=temporary-days]")?.getAttribute("content") ?? 0),
    trash_days: Number(document.querySelector("meta[name=trash-days]")?.getAttribute("content") ?? 0),
    operators_read: document.querySelector("meta[name=operators-read]") !== null,
    admin_url: null,
    logout_url: "/accounts/logout/",
    login_url: "/accounts/login/",
    ...given,
  };
}

export const boot = readBoot();

/** What the page was served with. */

/**
 * @typedef {{user: import("./state/types.js").User, conversation_id: string|null, csrf_token: string,
 *   limits: import("./state/types.js").Limits, version: string, product_name: string,
 *   admin_url: string|null, logout_url: string, login_url: string}} Boot
 */

/** @returns {Boot} */
function readBoot() {
  const element = document.getElementById("boot");
  const given = JSON.parse(element?.textContent ?? "{}");
  return {
    product_name: "Palimpsest",
    admin_url: null,
    logout_url: "/accounts/logout/",
    login_url: "/accounts/login/",
    ...given,
  };
}

export const boot = readBoot();

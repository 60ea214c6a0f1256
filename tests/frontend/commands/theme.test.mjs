import assert from "node:assert/strict";
import { test } from "node:test";
import { request, settled } from "./page.mjs";

const { chooseTheme, theme } = await import("../../../static/app/js/theme.js");
const { personal } = await import("../../../static/app/js/settings/store.js");

test("a theme that could not be stored is not kept", async () => {
  personal.value = { theme: "light" };
  chooseTheme("dark");
  assert.equal(document.documentElement.dataset.theme, "dark");
  (await request("PATCH", /me\/settings$/)).answer({ error: { code: "unavailable", message: "Not now." } }, 503);
  await settled();
  assert.deepEqual([theme.value, document.documentElement.dataset.theme], ["light", "light"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, request, settled } from "./page.mjs";

const { reportTimeZone } = await import("../../../static/app/js/commands/time_zone.js");

test("each account on a browser reports its time zone, once", async () => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  localStorage.setItem("palimpsest.time-zone", zone);
  localStorage.setItem("palimpsest.time-zone.u2", zone);
  reportTimeZone();
  const { body, answer } = await request("PATCH", /\/me$/);
  assert.deepEqual(body, { time_zone: zone });
  answer({});
  await settled();
  await reportTimeZone();
  assert.equal(asked.length, 1);
});

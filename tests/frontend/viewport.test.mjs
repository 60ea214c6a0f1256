import assert from "node:assert/strict";
import { test } from "node:test";
import { startViewport } from "../../static/app/js/viewport.js";

const properties = {};
globalThis.document = { documentElement: { style: { setProperty: (name, value) => (properties[name] = value) } } };
let scrolls = 0;
globalThis.scrollTo = () => (scrolls += 1);
const listeners = {};
const visualViewport = { height: 800, scale: 1, offsetTop: 0, addEventListener: (type, listener) => (listeners[type] = listener) };
globalThis.window = { visualViewport };
startViewport();

/** @param {{height: number, scale?: number, offsetTop?: number}} change */
function show({ height, scale = 1, offsetTop = 0 }) {
  Object.assign(visualViewport, { height, scale, offsetTop });
  for (const listener of Object.values(listeners)) listener();
  return properties["--viewport-height"];
}

test("the page is as tall as what the keyboard leaves, and is not scrolled under it", () => {
  assert.equal(show({ height: 800 }), "800px");
  assert.equal(show({ height: 450, offsetTop: 120 }), "450px");
  assert.ok(scrolls > 0);
});

test("the page keeps its height where it is enlarged by two fingers, and stays where they moved it", () => {
  const before = scrolls;
  assert.equal(show({ height: 320, scale: 2.5, offsetTop: 200 }), "800px");
  assert.equal(scrolls, before);
});

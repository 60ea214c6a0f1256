import assert from "node:assert/strict";
import { test } from "node:test";
import { placeToShow } from "../../static/app/js/links.js";

test("words that are the address need nothing beside them", () => {
  for (const words of ["https://example.com/a", "https://example.com", "example.com/a", " example.com "])
    assert.equal(placeToShow("https://example.com/a?b=c", words), "", words);
});

test("other words are followed by the place the link leads to", () => {
  assert.equal(placeToShow("https://evil.example/login", "your bank"), "evil.example");
  assert.equal(placeToShow("https://evil.example/login", "https://bank.example/login"), "evil.example");
  assert.equal(placeToShow("https://evil.example/", "bank.example"), "evil.example");
  assert.equal(placeToShow("https://evil.example:8443/", "https://evil.example/"), "evil.example:8443");
  assert.equal(placeToShow("https://evil.example/", "go to evil.example"), "evil.example");
});

test("what only looks like an address is none", () => {
  assert.equal(placeToShow("https://evil.example/", "https://bank.example@evil.example/"), "evil.example");
  assert.equal(placeToShow("https://bank.example@evil.example/", "bank.example"), "evil.example");
  // The Cyrillic letter in it is shown in the form that browsers ask for.
  assert.equal(placeToShow("https://b\u0430nk.example/", "https://bank.example/"), "xn--bnk-6cd.example");
});

test("a mail's address is shown, too", () => {
  assert.equal(placeToShow("mailto:a@b.example", "a@b.example"), "");
  assert.equal(placeToShow("mailto:a@b.example", "the help desk"), "a@b.example");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { isReadable } from "../../static/app/js/commands/fileStart.js";

const bytes = (text) => Uint8Array.from(text, (sign) => sign.charCodeAt(0));

test("what the server reads is sent", () => {
  for (const start of ["\x89PNG\r\n\x1a\n\x00", "%PDF-1.7\n\x00", "PK\x03\x04\x00", "\xff\xfea\x00", "a,b\r\n\t1", "caf\xe9", "\x1b[1mred", ""]) assert.ok(isReadable(bytes(start)), start);
});

test("programs and other binary files are not", () => {
  for (const start of ["MZ\x90\x00\x03", "\x7fELF\x02\x01\x01\x00", "\x1f\x8b\x08\x00", "text with a \x00"]) assert.ok(!isReadable(bytes(start)), start);
});

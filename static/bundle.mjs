/** Bundles the pages into the folder it is given: one module and one style sheet a page, and parts loaded when needed. */

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const shared = { absWorkingDir: root, outdir: process.argv[2], outbase: "app", bundle: true, minify: true, charset: "utf8", target: "es2022", logLevel: "warning" };

// Each page by itself: what two of them shared would be a further request of both.
for (const page of ["main", "memory", "shared"])
  await build({
    ...shared,
    entryPoints: [`app/js/${page}.js`],
    format: "esm",
    splitting: true,
    chunkNames: `js/${page}/[name]-[hash]`,
    legalComments: "eof",
  });
await build({ ...shared, entryPoints: ["app/css/*_page.css"], external: ["*.woff2"] });

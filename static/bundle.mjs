/** Bundle the pages into the given folder: a module and a style sheet per page, and chunks loaded on demand. */

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const shared = { absWorkingDir: root, outdir: process.argv[2], outbase: "app", bundle: true, minify: true, charset: "utf8", target: "es2022", logLevel: "warning" };

// Bundle each page separately: a chunk shared by two pages would cost both of them an extra request.
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

// Builds camit_widget/static/{widget.js,widget.css} from src/: one ES module and one style sheet, no CDN, no run-time imports.
//
//   node build.mjs            minified, for release and tests
//   node build.mjs --watch    readable, with source maps, rebuilt on every save (anywidget reloads it in the open notebook)
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = join(here, "..", "camit_widget", "static");
const watch = process.argv.includes("--watch");

/** @type {esbuild.BuildOptions} */
const options = {
  absWorkingDir: here,
  entryPoints: { widget: "src/index.ts" },
  bundle: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: !watch,
  sourcemap: watch ? "inline" : false,
  legalComments: "none",
  charset: "utf8",
  define: { "process.env.NODE_ENV": watch ? '"development"' : '"production"' },
  logLevel: "info",
  outdir,
};

/** The style sheet is an entry of its own: anywidget loads it beside the module. */
const styles = { ...options, entryPoints: { widget: "src/styles.css" } };

await mkdir(outdir, { recursive: true });
if (watch) {
  // A readable bundle is no release: the next `make` sees no mark of its sources and builds a minified one.
  await rm(join(outdir, ".built-from"), { force: true });
  const contexts = await Promise.all([esbuild.context(options), esbuild.context(styles)]);
  await Promise.all(contexts.map((context) => context.watch()));
} else {
  await Promise.all([esbuild.build(options), esbuild.build(styles)]);
  for (const name of ["widget.js", "widget.css"]) {
    const size = gzipSync(await readFile(join(outdir, name))).length;
    console.log(`${name}: ${(size / 1000).toFixed(1)} kB gzip`);
  }
}

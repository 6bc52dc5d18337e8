import { defineConfig } from "vitest/config";

export default defineConfig({
  // The same JSX runtime as build.mjs and tsconfig.json.
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    environment: "jsdom",
    include: ["tests/**/*.test.{ts,tsx}"],
    // An empty suite is a broken suite, so this stays off: passWithNoTests.
    restoreMocks: true,
  },
});

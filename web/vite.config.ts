/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.TIDEWHEEL_SERVER ?? "http://127.0.0.1:8450";

export default defineConfig({
  plugins: [react()],
  build: {
    // The server sends what lies here; git ignores it, the wheel does not.
    outDir: "../src/tidewheel/server/built_page",
    emptyOutDir: true,
    target: "es2023",
    // Everything is a file of its own: the policy of the page allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
  worker: {
    format: "es",
    // The server gives files of this name, and only those, leave to compile WebAssembly.
    rollupOptions: { output: { entryFileNames: "assets/worker-[hash].js" } },
  },
  // The server takes changes from its own pages alone: to it, these are some of them.
  server: { proxy: Object.fromEntries(["/api", "/login", "/status"].map((path) => [path, { target: server, changeOrigin: true, headers: { origin: server } }])) },
  // A document is made only for tests that draw something (*.test.tsx says so in its first line).
  // Slow is no failure: a machine may be busy with something else.
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"], testTimeout: 60_000, hookTimeout: 60_000 },
});

import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const API = ["/auth", "/datasets", "/jobs", "/stats", "/agent", "/files", "/health", "/metrics", "/docs", "/openapi.json", "/install.sh", "/downloads"];
const TARGET = "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  // The page's policy allows scripts, fonts and fetches from this origin alone, so nothing may become a data: address.
  build: { outDir: "dist", assetsInlineLimit: 0, target: "es2022" },
  assetsInclude: ["**/*.py", "**/*.csv"],
  // The guide's pages are the files of docs/, one folder up.
  server: { port: 3000, strictPort: true, fs: { allow: [".."] }, proxy: Object.fromEntries(API.map((path) => [path, { target: TARGET, xfwd: true }])) },
  test: { environment: "happy-dom", include: ["src/**/*.test.{ts,tsx}"], css: { modules: { classNameStrategy: "non-scoped" } } },
});

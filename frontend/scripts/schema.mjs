// Types of the API, from the backend's own OpenAPI schema. `--check` changes nothing and fails when the file is stale.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const root = fileURLToPath(new URL("../..", import.meta.url));
const target = fileURLToPath(new URL("../src/shared/api/schema.d.ts", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "gridx-schema-"));
const dump = "import json, sys; from gridx.app import create_app; json.dump(create_app().openapi(), open(sys.argv[1], 'w'))";

try {
  const file = join(home, "openapi.json");
  const env = { ...process.env, GRIDX_HOME: home, DATABASE_URL: "", JWT_SECRET_KEY: "", SUPABASE_URL: "" };
  execFileSync(join(root, ".venv/bin/python"), ["-c", dump, file], { env, cwd: home, stdio: ["ignore", "ignore", "inherit"] });
  const schema = JSON.parse(readFileSync(file, "utf8"));
  schema.info.version = "0";
  const text = `// Made by \`npm run schema\` from the backend; do not edit.\n${astToString(await openapi(schema))}`;
  if (!process.argv.includes("--check")) {
    writeFileSync(target, text);
  } else if (readFileSync(target, "utf8") !== text) {
    process.exitCode = 1;
    process.stderr.write("src/shared/api/schema.d.ts is not what the backend offers now; run: npm run schema\n");
  }
} finally {
  rmSync(home, { recursive: true });
}

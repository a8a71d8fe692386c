/**
 * The published JSON Schema, for editors. `node src/config/schema/file.ts` writes it. A test checks that the file is
 * current.
 */
import { writeFileSync } from "node:fs";
import { configSchema } from "./schema.ts";

/** The text of `tollgate.schema.json`: JSON Schema, draft 2020-12. */
export function schemaFileText(): string {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "tollgate.yaml",
    ...configSchema,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

if (import.meta.main) {
  writeFileSync(new URL("../../../tollgate.schema.json", import.meta.url), schemaFileText());
}

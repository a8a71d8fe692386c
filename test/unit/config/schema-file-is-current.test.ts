import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import Schema from "typebox/schema";
import { parse } from "yaml";
import { schemaFileText } from "../../../src/config/schema/file.ts";

const root = new URL("../../../", import.meta.url);
const published = readFileSync(new URL("tollgate.schema.json", root), "utf8");
const validator = Schema.Compile(JSON.parse(published));
const bad = new URL("test/unit/config/bad/", root);

test("tollgate.schema.json matches the code (npm run schema writes it)", () => {
  assert.equal(published, schemaFileText());
});

test("the published schema accepts the example, references unexpanded", () => {
  const example: unknown = parse(readFileSync(new URL("tollgate.example.yaml", root), "utf8"));
  assert.ok(validator.Check(example), JSON.stringify(validator.Errors(example)));
});

// A schema cannot express these: notation, the environment, other files, and relations between values.
const BEYOND_SCHEMA =
  /^(console-(oidc-(issuer|plan)|trusted-header-(taken|without)|path|session|invitation|public)|admin-public|admin-token-short|alias|base-url-|card-(group|plan|lasts|quota)|cors-path|cost-(tier|tool|without)|default-|duplicate-|duration-(zero|too)|env-|group-(model|pattern|multiplier-float)|header-(owned|twice|split)|health-cool|journal-too|key-twice|listen-|media-|merge|notices-(card|secret-|url-(cred|plain|port))|not-yaml|output-above|overload-memory|plan-unknown|pass-members-(inside|limit|listed|mistaken|nested|priced|state|tier)|price-(option-(is|mis|of|unknown)|step|tier-(in|joined|mis|order|standard|step|without-cached)|tool-(dated|mis|of|preview)|whole)|queue-wait|redis-(sentinel-of|tls)|route-upstream|rule-(defaults|drops|empty|header-(env|hop|key|nothing|owned|split|twice|type)|only|protocol-of|sets|thinking|two|value)|sealing-|secret-file|site-(cred|is)|size-too|stateful-|store-|tab-|tag|tls-(ca|certificate|key)|too-deep|tool-calls-held|trust-proxy-(bits|prefix)|two-doc|unknown-alias|workers-on|empty-file)/;

test("the published schema refuses the bad files that a schema can refuse", () => {
  const refusable = readdirSync(bad).filter((file) => !BEYOND_SCHEMA.test(file));
  assert.ok(refusable.length > 40, `${refusable.length} files`);
  const accepted = refusable.filter((file) => validator.Check(parse(readFileSync(new URL(file, bad), "utf8"))));
  assert.deepEqual(accepted, []);
});

test("every option has a description for editors", () => {
  const missing: string[] = [];
  const visit = (word: Record<string, unknown>, path: string): void => {
    for (const [name, member] of Object.entries((word.properties ?? {}) as Record<string, Record<string, unknown>>)) {
      if (typeof member.description !== "string") missing.push(`${path}.${name}`);
      visit(member, `${path}.${name}`);
    }
    for (const member of Object.values((word.patternProperties ?? {}) as Record<string, Record<string, unknown>>)) {
      visit(member, `${path}.*`);
    }
    if (word.items) visit(word.items as Record<string, unknown>, `${path}[]`);
  };
  visit(JSON.parse(published), "");
  assert.deepEqual(missing, []);
});

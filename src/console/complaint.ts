/**
 * Turns the validator's findings into a sentence that names the member at fault. The value itself is never repeated:
 * a key or token may have been pasted into the wrong place.
 */
import { AdminRefusal, malformed } from "./refusal.ts";

/** One finding of ajv, with `verbose` on; only what is read here. */
export interface SchemaFinding {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly parentSchema?: Readonly<Record<string, unknown>>;
}

/** Characters of a client's own member name that are repeated at most. */
const NAME_LENGTH_MAX = 64;

/**
 * The refusal for the first finding.
 * @param part where it was found: `body`, `params` or `querystring`.
 */
export function complain(part: string, findings: readonly SchemaFinding[]): AdminRefusal {
  const finding = whole(findings);
  const place = PLACES[part] ?? part;
  if (finding === undefined) return malformed(place, "well-formed", "Correct the request.");
  const { keyword, params } = finding;
  if (keyword === "additionalProperties") {
    const name = printable(String(params.additionalProperty));
    const known = Object.keys((finding.parentSchema?.properties as object | undefined) ?? {}).join(", ");
    const remedy = `Remove it; known here: ${known || "none"}.`;
    return new AdminRefusal(400, "unknown_member", `The ${place} has no member \`${name}\`.`, remedy);
  }
  if (keyword === "required") {
    const name = String(params.missingProperty);
    const properties = finding.parentSchema?.properties as Record<string, Record<string, unknown>> | undefined;
    const rule = words(properties?.[name], "description") ?? "present";
    return new AdminRefusal(400, "missing_member", `\`${name}\` is missing in the ${place}.`, `Add it: ${rule}.`);
  }
  const path = finding.instancePath.slice(1).replaceAll("/", ".");
  if (path === "")
    return malformed(place, "a JSON object", "Send a JSON object with `content-type: application/json`.");
  const rule = words(finding.parentSchema, "description") ?? "well-formed";
  return malformed(path, rule, words(finding.parentSchema, "x-remedy") ?? "Correct it and send the request again.");
}

/** The first finding; of a choice between values the one on the choice, since its values have no words of their own. */
function whole(findings: readonly SchemaFinding[]): SchemaFinding | undefined {
  const [first] = findings;
  if (first?.keyword !== "const") return first;
  return findings.find((one) => one.keyword === "anyOf" && one.instancePath === first.instancePath) ?? first;
}

const PLACES: Readonly<Record<string, string>> = { body: "body", params: "path", querystring: "query" };

function words(schema: Readonly<Record<string, unknown>> | undefined, name: string): string | undefined {
  const text = schema?.[name];
  return typeof text === "string" ? text : undefined;
}

/** A member's name in a form for answers: short, without control characters. */
function printable(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).replaceAll(/\p{C}/gu, "?");
}

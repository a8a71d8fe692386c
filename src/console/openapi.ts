/**
 * The OpenAPI 3.1 document of the admin listener, generated from the routes: input is described by the schemas that
 * validate it, answers by `answers.ts`. The only file that imports @fastify/swagger.
 */
import swagger from "@fastify/swagger";
import { ErrorShape } from "./answers/answers.ts";
import { anything } from "./answers/shape.ts";
import { type ConsoleRoute, type RouteWords, route } from "./routes/contract.ts";
import type { TObject } from "./vocabulary.ts";

/** What the document describes: a route of the admin API, or one of the open ones. */
export type DescribedRoute = RouteWords &
  Partial<Pick<ConsoleRoute, "method" | "params" | "query" | "body" | "write">> & {
    /** The media type of its successful answers if it is not JSON. */
    readonly mediaType?: string;
    /** Who may call it; only the administrator if missing. */
    readonly access?: "anyone" | "metrics";
  };

const SECURITY = [{ adminToken: [] }];

/** Refusals that every route of the admin API has. */
const ALWAYS: Readonly<Record<number, string>> = {
  401: "`missing_token`, `wrong_token`.",
  403: "`admin_token_required`: the gateway has no admin token, and the caller is not a program on its machine.",
  429: "`too_many_wrong_tokens`: the token is wrong, and this address has sent too many wrong tokens; `retry-after` says for how long.",
  500: "`internal`: a defect; the log has details.",
  503: "`store_unavailable`, `store_older`, `not_confirmed`: the remedy says whether to repeat the request.",
};
const JUDGED =
  "`malformed`, `missing_member`, `unknown_member`, `duplicate_member`, `not_json`, or a name that the configuration lacks.";
const WITH_BODY: Readonly<Record<number, string>> = { 413: "`too_large`.", 415: "`not_json`." };

export const openApiPlugin = swagger;

/** Options of the plugin. A route carries its description as `config.described`. */
export const OPEN_API_OPTIONS = {
  openapi: {
    openapi: "3.1.0",
    info: {
      title: "Tollgate admin API",
      version: "1",
      description:
        "Accounts, keys, funds, codes and the ledger of a Tollgate gateway. Amounts are strings of US dollars, instants " +
        "ISO 8601 in UTC. Every answer carries `x-request-id`. Listings have `limit` and a cursor; `next` is null on the " +
        "last page. A write can be repeated: it counts once, by its name, its id or its `idempotency_id`.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://127.0.0.1:8788", description: "The default of `admin:` in tollgate.yaml." }],
    components: {
      securitySchemes: {
        adminToken: {
          type: "http",
          scheme: "bearer",
          description: "`admin_token`, or the generated one in the data folder.",
        },
      },
    },
    security: SECURITY,
  },
  transform: ({ schema, url, route }: { schema: unknown; url: string; route: object }) => {
    const { described } = (route as { readonly config?: { readonly described?: DescribedRoute } }).config ?? {};
    return { schema: described ? schemaOf(described) : { ...(schema as object), hide: true }, url };
  },
  transformObject: (made: { openapiObject?: object }) => withComponents(made.openapiObject ?? {}),
} as unknown as Parameters<typeof swagger>[1];

/** The part of a route's schema that the plugin reads. */
function schemaOf(described: DescribedRoute): object {
  const { id, summary, description, params, query, body, answers, mediaType = "application/json" } = described;
  const good = Object.entries(answers).map(([status, shape]) => [
    status,
    { description: goodWords(Number(status), described), content: { [mediaType]: { schema: shape } } },
  ]);
  const refused = Object.entries(refusalsOf(described)).map(([status, words]) => [
    status,
    { description: words, content: { "application/json": { schema: ErrorShape } } },
  ]);
  return {
    operationId: id,
    summary,
    ...(description && { description }),
    ...(params && { params }),
    ...(query && { querystring: { ...query, properties: shown((query as TObject).properties) } }),
    ...(body && { body }),
    ...(described.access && { security: described.access === "metrics" ? [{}, ...SECURITY] : [{}] }),
    response: Object.fromEntries([...good, ...refused]),
  };
}

/** What the document has of query parameters whose texts stand for something else. */
function shown(parameters: Readonly<Record<string, object>>): object {
  const entries = Object.entries(parameters).map(([name, schema]) => {
    const { "x-openapi": instead, description } = schema as {
      readonly "x-openapi"?: object;
      readonly description?: string;
    };
    return [name, instead ? { ...instead, description } : schema];
  });
  return Object.fromEntries(entries);
}

function goodWords(status: number, { write }: DescribedRoute): string {
  if (status === 201) return "Done.";
  return write ? "Done now, or already done before." : "The answer.";
}

function refusalsOf({ access, params, query, body, refusals }: DescribedRoute): Readonly<Record<number, string>> {
  if (access === "anyone") return refusals ?? {};
  const judged: Readonly<Record<number, string>> = params || query || body ? { 400: JUDGED } : {};
  return { ...judged, ...ALWAYS, ...(body && WITH_BODY), ...refusals };
}

/** Moves each titled schema to the components, once, and puts a reference in its place. */
function withComponents(document: object): object {
  const schemas: Record<string, unknown> = {};
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== "object" || value === null) return value;
    const visited = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member)]));
    const { title, type, properties, required, ...rest } = visited;
    if (typeof title !== "string" || typeof properties !== "object") return visited;
    schemas[title] = { title, type: "object", properties, required, ...rest };
    const reference = { $ref: `#/components/schemas/${title}` };
    // A nullable schema becomes: the schema, or null.
    return Array.isArray(type) ? { anyOf: [reference, { type: "null" }] } : reference;
  };
  const { components, ...rest } = visit(document) as { readonly components: object };
  const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...rest, components: { ...components, schemas: sorted } };
}

/** `GET /admin/v1/openapi.json`. @param document returns the document once the server is ready */
export function openApiRoutes(document: () => object): readonly ConsoleRoute[] {
  const Document = anything("This document.");
  return [
    route({
      method: "GET",
      path: "/openapi.json",
      id: "showOpenApi",
      summary: "This API as an OpenAPI 3.1 document",
      answers: { 200: Document },
      handle: async () => ({ status: 200, body: document() }),
    }),
  ];
}

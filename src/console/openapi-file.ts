/**
 * The published OpenAPI document. `node src/console/openapi-file.ts` writes it; a test compares it with the running server.
 */

import { writeFileSync } from "node:fs";
import type { Store } from "../store/contract.ts";
import type { Catalog } from "../values/catalog.ts";
import { systemClock } from "../values/time.ts";
import { makeAccess } from "./access.ts";
import { adminApp } from "./admin-app.ts";
import { CodeGuesses } from "./guess-budget.ts";

/** The text of `docs/openapi.json`: every route, from an application that receives no requests. */
export async function openApiFileText(): Promise<string> {
  const unused = (): never => {
    throw new Error("a route was called while the document was written");
  };
  const app = adminApp({
    store: {} as Store,
    catalog: (): Catalog => unused(),
    random: unused,
    codeGuesses: new CodeGuesses(systemClock),
    clock: systemClock,
    access: makeAccess(undefined),
    isUnix: false,
    metrics: unused,
    readiness: unused,
    log: unused,
    explain: unused,
    storeStatus: unused,
    confirmStore: unused,
    upstreams: unused,
    notices: { status: unused, laneOf: unused, test: unused, retry: unused },
    running: unused,
    figures: unused,
    configuration: unused,
  });
  await app.ready();
  const text = `${JSON.stringify(app.swagger(), null, 2)}\n`;
  await app.close();
  return text;
}

if (import.meta.main) {
  writeFileSync(new URL("../../docs/openapi.json", import.meta.url), await openApiFileText());
}

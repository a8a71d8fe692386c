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

/** The text of `docs/openapi.json`: every route, on a server that is never asked anything. */
export async function openApiFileText(): Promise<string> {
  const nobody = (): never => {
    throw new Error("nobody is asked for the document");
  };
  const app = adminApp({
    store: {} as Store,
    catalog: (): Catalog => nobody(),
    random: nobody,
    codeGuesses: new CodeGuesses(systemClock),
    clock: systemClock,
    access: makeAccess(undefined),
    isUnix: false,
    metrics: nobody,
    readiness: nobody,
    log: nobody,
    explain: nobody,
    storeStatus: nobody,
    confirmStore: nobody,
    upstreams: nobody,
    notices: { status: nobody, laneOf: nobody, test: nobody, retry: nobody },
    running: nobody,
    figures: nobody,
    configuration: nobody,
  });
  await app.ready();
  const text = `${JSON.stringify(app.swagger(), null, 2)}\n`;
  await app.close();
  return text;
}

if (import.meta.main) {
  writeFileSync(new URL("../../docs/openapi.json", import.meta.url), await openApiFileText());
}

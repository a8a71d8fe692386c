/**
 * The line of deploy/envoy.yaml for `console.trusted_header`: with it a user name can only come from a filter of Envoy.
 * The second test shows why the line is not `request_headers_to_remove`.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { parse } from "yaml";
import { checkEnvoyFile, ENVOY_FILE, startEnvoy } from "../../../rig/envoy.ts";

const COMMENTED = /^( +)# (- remove: x-forwarded-user)$/m;

/** The parts of Envoy's connection manager that are changed here. */
interface Manager {
  typed_config: {
    early_header_mutation_extensions: { typed_config: { mutations: unknown[] } }[];
    route_config: { request_headers_to_remove: string[] };
    http_filters: unknown[];
  };
}

/** A filter that sets a name if there is none yet, as an authentication filter may. */
const NAMES_ALICE = {
  name: "envoy.filters.http.header_mutation",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
    mutations: {
      request_mutations: [
        { append: { header: { key: "x-forwarded-user", value: "alice" }, append_action: "ADD_IF_ABSENT" } },
      ],
    },
  },
};

/** @returns the name that a visitor who claims to be mallory has behind an Envoy with these changes. */
async function namedBehind(t: TestContext, change: (manager: Manager["typed_config"]) => void) {
  const names: (string | string[] | undefined)[] = [];
  const server = createServer(({ url, headers }, answer) => {
    if (url === "/console") names.push(headers["x-forwarded-user"]);
    answer.end();
  }).listen(0, "127.0.0.1");
  t.after(() => server.close().closeAllConnections());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const envoy = await startEnvoy({
    endpoints: [{ listen: port, adminPort: port }],
    edit(config) {
      const filters = config.static_resources.listeners[0]?.filter_chains[0]?.filters ?? [];
      change((filters[0] as Manager).typed_config);
    },
  });
  t.after(() => envoy.stop());
  const answer = await fetch(`${envoy.url}/console`, { headers: { "x-forwarded-user": "mallory" } });
  assert.equal(answer.status, 200);
  return names;
}

test("with the line of deploy/envoy.yaml a name comes only from the front's own filter", async (t) => {
  const line = COMMENTED.exec(readFileSync(ENVOY_FILE, "utf8"))?.[2];
  assert.ok(line, "deploy/envoy.yaml has the line");
  assert.match(await checkEnvoyFile((text) => text.replace(COMMENTED, "$1$2")), /OK/);
  const take = ({ early_header_mutation_extensions: [first] }: Manager["typed_config"]) =>
    first?.typed_config.mutations.push(...(parse(line) as unknown[]));
  assert.deepEqual(await namedBehind(t, take), [undefined]);
  const takeAndName = (manager: Manager["typed_config"]) => {
    take(manager);
    manager.http_filters.unshift(NAMES_ALICE);
  };
  assert.deepEqual(await namedBehind(t, takeAndName), ["alice"]);
});

test("without it visitors choose their name, and request_headers_to_remove would remove the filter's name, too", async (t) => {
  assert.deepEqual(await namedBehind(t, (manager) => manager.http_filters.unshift(NAMES_ALICE)), ["mallory"]);
  const removeLate = (manager: Manager["typed_config"]) => {
    manager.http_filters.unshift(NAMES_ALICE);
    manager.route_config.request_headers_to_remove.push("x-forwarded-user");
  };
  assert.deepEqual(await namedBehind(t, removeLate), [undefined]);
});

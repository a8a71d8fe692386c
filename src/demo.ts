/**
 * The demonstration, which runs if there is no configuration: a simulated upstream in this process, an account with
 * funds, and a key that is shown once.
 */
import { randomBytes } from "node:crypto";
import { DEFAULTS, demoConfig } from "./config/config.ts";
import type { Gateway } from "./gateway.ts";
import { type Simulator, startSimulator } from "./simulator/server.ts";
import { newAccountTag, newKey } from "./values/key.ts";
import { parseUsd } from "./values/money.ts";
import { COMMAND } from "./values/program/program.ts";
import { DEMO_DATA_DIR, urlOf } from "./values/settings.ts";

const ACCOUNT = "demo";
const GROUP = "demo";
const FUNDS_USD = "10";
/** Slow enough to see the answer arrive. */
const PACE = { headersDelayMs: 60, firstDelayMs: 240, betweenMs: 25 };

/**
 * Starts the simulated upstream and writes the configuration that uses it.
 * @param env may move the listeners: `TOLLGATE_LISTEN`, `TOLLGATE_ADMIN`.
 */
export async function startDemo(
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ simulator: Simulator; text: string }> {
  const simulator = await startSimulator({ pace: PACE, models: ["demo-chat", "demo-messages", "demo-responses"] });
  const { TOLLGATE_LISTEN: listen, TOLLGATE_ADMIN: admin } = env;
  const places = {
    upstreamUrl: simulator.url,
    dataDir: DEMO_DATA_DIR,
    ...(listen && { listen }),
    ...(admin && { admin }),
  };
  return { simulator, text: demoConfig(places) };
}

/** Creates the demonstration account at the first start. @returns its key at that start, undefined at later ones. */
export async function demoKey({ store }: Gateway): Promise<string | undefined> {
  const account = await store.createAccount({ tag: newAccountTag(randomBytes), name: ACCOUNT, plan: "free" });
  if (account === "exists") return undefined;
  const amount = parseUsd(FUNDS_USD) ?? 0n;
  await store.credit(account.tag, { id: "demo-funds", amount, kind: "topup", note: "demonstration funds" });
  const key = newKey(account.tag, randomBytes);
  await store.createKey(account.tag, { id: key.id, hash: key.hash, group: GROUP });
  return key.text;
}

/** The text that is shown at the start. */
export function demoWelcome(gateway: Gateway, key: string | undefined): string {
  const url = urlOf(gateway.listen);
  const admin = urlOf(gateway.admin);
  // By default commands ask the default address, where another gateway may be; they cannot use a socket.
  const isElsewhere = gateway.admin.kind === "tcp" && admin !== `http://${DEFAULTS.admin}`;
  const there = isElsewhere ? ` --admin ${admin}` : "";
  const lines = [
    "Tollgate runs a DEMONSTRATION: its upstream is a simulation in this process, no model answers.",
    "",
    `  clients   ${url}/v1   (chat completions, messages, responses)`,
    `  site      ${url}/`,
    `  console   ${url}${DEFAULTS.consolePath}   (for owners of keys: \`${COMMAND} account invite ${ACCOUNT}${there}\` makes a sign-in link)`,
    `  operator  ${admin}/console/   (sign in with the token in ${DEMO_DATA_DIR}/admin-token)`,
    `  metrics   ${admin}/metrics`,
    `  admin API ${admin}/admin/v1   (the same token; ${COMMAND}${there} finds it)`,
    "",
  ];
  if (key === undefined) {
    lines.push(
      "The demonstration key was shown at the first start and is not kept. Make another one:",
      "",
      `  ${COMMAND} key create --account ${ACCOUNT} --group ${GROUP}${there}`,
    );
  } else {
    lines.push(
      `Demonstration key, shown only this once (account "${ACCOUNT}", ${FUNDS_USD} USD): ${key}`,
      "",
      "Try it:",
      "",
      `  curl -N ${url}/v1/chat/completions \\`,
      `    -H 'authorization: Bearer ${key}' -H 'content-type: application/json' \\`,
      `    -d '{"model":"demo-chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
    );
  }
  lines.push(
    "",
    `To serve real models, write a tollgate.yaml (\`${COMMAND} init\`) and start again. Stop with Ctrl-C.`,
    "",
  );
  return lines.join("\n");
}

/**
 * The text of the `tollgate.yaml` that `tollgate init` writes: the minimum to serve a model, with a comment on each
 * line.
 */
import type { Protocol } from "../../values/protocol.ts";

export interface FirstSettings {
  /** Base URL of the upstream, up to and including `/v1`. */
  readonly baseUrl: string;
  readonly protocol: Protocol;
  /** The model's name, for clients and at the upstream. */
  readonly model: string;
  /** The environment variable with the upstream's API key; undefined if it needs none. */
  readonly apiKeyEnv: string | undefined;
  readonly listen: string;
  readonly admin: string;
  readonly store: string;
  /** A fresh secret. */
  readonly sealingKey: string;
}

/**
 * Quotes a string for YAML and escapes `${`, so that the loader does not read it as a reference. In a replacement `$$`
 * is one `$`.
 */
const quoted = (text: string): string => JSON.stringify(text.replaceAll("${", "$$$${"));

/** The only group in the file. */
export const GROUP = "default";

export function configurationText(answers: FirstSettings): string {
  const { baseUrl, protocol, model, apiKeyEnv, listen, admin, store, sealingKey } = answers;
  const key =
    apiKeyEnv === undefined
      ? `    # api_key: "\${UPSTREAM_KEY}"      # if the server needs one; from the environment, or file:/path`
      : `    api_key: "\${${apiKeyEnv}}"      # from the environment; file:/path reads a file`;
  return `# Tollgate's configuration, written by \`tollgate init\`. \`tollgate check\` reports every mistake with its line. A running
# gateway loads changes of this file. tollgate.example.yaml and tollgate.schema.json have all settings.
# This file contains a secret (sealing_keys). Keep it private, or move the secret to the environment: "\${TOLLGATE_SEALING_KEY}".

listen: ${quoted(listen)}      # for clients, behind nginx or Envoy
admin: ${quoted(admin)}       # health, metrics and the admin API; never make it public
store: ${quoted(store)}      # accounts, keys and money; several gateways can share a Redis: redis://host:6379/0

# Seals what clients carry for the gateway between requests. The first key seals, all of them open. Gateways that share a
# store need the same keys.
sealing_keys: [${quoted(sealingKey)}]

upstreams:
  main:
    protocol: ${protocol}      # protocol of the server: chat, messages or responses; clients may use any
    base_url: ${quoted(baseUrl)}
${key}

plans: {free: {}}
default_plan: free      # plan of new accounts

models:
  ${quoted(model)}:      # name for clients
    plans: [free]
    price: {input: "0", output: "0"}      # USD per million tokens; 0 means free
    context_tokens: 128000      # context length: prompt and answer together
    max_output_tokens: 16384
    routes: [{upstream: main}]      # add model: NAME if the server uses another name

groups:
  ${GROUP}: {kind: pay_per_use, models: [${quoted(model)}]}      # limits: {requests_per_minute: 60, concurrency: 5}
`;
}

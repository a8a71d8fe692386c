/** The text of the `tollgate.yaml` that `tollgate init` writes: the least that serves a model, each line explained. */
import type { Protocol } from "../../values/protocol.ts";

export interface FirstSettings {
  /** Where the model server is, up to and including `/v1`. */
  readonly baseUrl: string;
  readonly protocol: Protocol;
  /** The model's name, for clients and at its server. */
  readonly model: string;
  /** The environment variable with the server's API key; undefined where it needs none. */
  readonly apiKeyEnv: string | undefined;
  readonly listen: string;
  readonly admin: string;
  readonly store: string;
  /** A fresh secret. */
  readonly sealingKey: string;
}

/** A text as the loader reads it back: quoted, and `${` not taken for a reference. In a replacement `$$` is one `$`. */
const quoted = (text: string): string => JSON.stringify(text.replaceAll("${", "$$$${"));

/** The one group that the file has. */
export const GROUP = "default";

export function configurationText(answers: FirstSettings): string {
  const { baseUrl, protocol, model, apiKeyEnv, listen, admin, store, sealingKey } = answers;
  const key =
    apiKeyEnv === undefined
      ? `    # api_key: "\${UPSTREAM_KEY}"      # for a server that asks for one; from the environment, or file:/path`
      : `    api_key: "\${${apiKeyEnv}}"      # from the environment; file:/path reads a file`;
  return `# Tollgate's configuration, written by \`tollgate init\`. \`tollgate check\` names every mistake with its line; a change is
# taken over while it runs. tollgate.example.yaml and tollgate.schema.json have all settings.
# This file holds a secret (sealing_keys): keep it private, or move that into the environment: "\${TOLLGATE_SEALING_KEY}".

listen: ${quoted(listen)}      # where clients come in, behind nginx or Envoy
admin: ${quoted(admin)}       # health, metrics and the admin API; never public
store: ${quoted(store)}      # accounts, keys and money; several gateways share a Redis: redis://host:6379/0

# Seals what clients carry for us between requests. The first seals, all open; every gateway on one store has the same.
sealing_keys: [${quoted(sealingKey)}]

upstreams:
  main:
    protocol: ${protocol}      # what the model server speaks: chat, messages or responses; clients may speak any
    base_url: ${quoted(baseUrl)}
${key}

plans: {free: {}}
default_plan: free      # of a new account

models:
  ${quoted(model)}:      # as clients name it
    plans: [free]
    price: {input: "0", output: "0"}      # USD per million tokens; at 0 nothing is charged
    context_tokens: 128000      # what the model takes, prompt and answer together
    max_output_tokens: 16384
    routes: [{upstream: main}]      # model: NAME where its server has another name for it

groups:
  ${GROUP}: {kind: pay_per_use, models: [${quoted(model)}]}      # limits: {requests_per_minute: 60, concurrency: 5}
`;
}

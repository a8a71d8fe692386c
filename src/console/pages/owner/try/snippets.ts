/** The code that sends the same request from elsewhere. It never contains the key. */
import { type ProtocolName, SPOKEN, type TrialConversation } from "./protocols.ts";

interface Snippets {
  readonly curl: string;
  readonly python: string;
  readonly javascript: string;
}

/** @param origin the gateway's address, without a slash at the end */
export function snippetsOf(protocol: ProtocolName, conversation: TrialConversation, origin: string): Snippets {
  const body = SPOKEN[protocol].bodyOf(conversation);
  return {
    curl: curlOf(protocol, body, origin),
    python: pythonOf(protocol, body, origin),
    javascript: scriptOf(protocol, body, origin),
  };
}

function curlOf(protocol: ProtocolName, body: object, origin: string): string {
  const { path, headersOf } = SPOKEN[protocol];
  const headers = Object.entries({ ...headersOf("$TOLLGATE_KEY"), "content-type": "application/json" });
  // Within single quotes, a shell interprets only the next single quote.
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`);
  return [
    `curl --no-buffer ${origin}${path} \\`,
    ...headers.map(([name, value]) => `  -H "${name}: ${value}" \\`),
    `  -d '${json}'`,
  ].join("\n");
}

const CALLS: Readonly<Record<ProtocolName, string>> = {
  chat: "chat.completions.create",
  messages: "messages.create",
  responses: "responses.create",
};

function pythonOf(protocol: ProtocolName, body: object, origin: string): string {
  const isMessages = protocol === "messages";
  const [sdk, client] = isMessages ? ["anthropic", "Anthropic"] : ["openai", "OpenAI"];
  const base = isMessages ? origin : `${origin}/v1`;
  const members = Object.entries(body).map(([name, value]) => `    ${name}=${asPython(value, "    ")},`);
  return `import os
from ${sdk} import ${client}

client = ${client}(api_key=os.environ["TOLLGATE_KEY"], base_url=${JSON.stringify(base)})
stream = client.${CALLS[protocol]}(
${members.join("\n")}
)
for event in stream:
    print(event)
`;
}

/** A JSON value in Python syntax; a JSON string is also a Python string. */
function asPython(value: unknown, indent: string): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  if (Array.isArray(value)) {
    return `[\n${value.map((one) => `${inner}${asPython(one, inner)},`).join("\n")}\n${indent}]`;
  }
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${asPython(one, inner)}`);
  return `{${members.join(", ")}}`;
}

function scriptOf(protocol: ProtocolName, body: object, origin: string): string {
  const isMessages = protocol === "messages";
  const [sdk, client] = isMessages ? ["@anthropic-ai/sdk", "Anthropic"] : ["openai", "OpenAI"];
  const base = isMessages ? origin : `${origin}/v1`;
  return `import ${client} from "${sdk}";

const client = new ${client}({ apiKey: process.env.TOLLGATE_KEY, baseURL: ${JSON.stringify(base)} });
const stream = await client.${CALLS[protocol]}(${JSON.stringify(body, null, 2)});
for await (const event of stream) console.log(event);
`;
}

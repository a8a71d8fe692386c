/** Complete settings of common clients. A test compares them with docs/clients.md. */

interface ClientFile {
  /** The path of the file, or its language. */
  readonly where: string;
  readonly text: string;
}

interface Client {
  readonly name: string;
  readonly files: readonly ClientFile[];
}

interface Filled {
  /** This gateway's address, without `/v1` and without a slash at the end. */
  readonly address: string;
  readonly key: string;
  readonly model: string;
}

/** @returns the settings of each client */
export function clientSettings({ address, key, model }: Filled): readonly Client[] {
  const v1 = `${address}/v1`;
  const exported = { where: "shell", text: `export TOLLGATE_KEY=${key}` };
  return [
    {
      name: "Claude Code",
      files: [
        {
          where: "shell",
          text: [
            `export ANTHROPIC_BASE_URL=${address}`,
            `export ANTHROPIC_AUTH_TOKEN=${key}`,
            `export ANTHROPIC_MODEL=${model}`,
            "export CLAUDE_CODE_ATTRIBUTION_HEADER=0",
          ].join("\n"),
        },
      ],
    },
    { name: "Codex", files: [exported, { where: "~/.codex/config.toml", text: codex(v1, model) }] },
    { name: "opencode", files: [exported, { where: "opencode.json", text: opencode(v1, model) }] },
    {
      name: "OpenAI SDK",
      files: [
        exported,
        { where: "JavaScript", text: `new OpenAI({ apiKey: process.env.TOLLGATE_KEY, baseURL: "${v1}" });` },
        { where: "Python", text: `key = os.environ["TOLLGATE_KEY"]\nOpenAI(api_key=key, base_url="${v1}")` },
      ],
    },
    {
      name: "Anthropic SDK",
      files: [
        exported,
        { where: "JavaScript", text: `new Anthropic({ apiKey: process.env.TOLLGATE_KEY, baseURL: "${address}" });` },
        { where: "Python", text: `key = os.environ["TOLLGATE_KEY"]\nAnthropic(api_key=key, base_url="${address}")` },
      ],
    },
    { name: "AI SDK", files: [exported, { where: "JavaScript", text: aiSdk(v1) }] },
    { name: "LangChain", files: [exported, { where: "JavaScript", text: langChain(address, v1, model) }] },
    { name: "curl", files: [{ where: "shell", text: curl(v1, key, model) }] },
  ];
}

const codex = (v1: string, model: string) => `model = "${model}"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${v1}"
env_key = "TOLLGATE_KEY"
wire_api = "responses"`;

const opencode = (v1: string, model: string) => `{
  "provider": {
    "tollgate": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "${v1}", "apiKey": "{env:TOLLGATE_KEY}" },
      "models": { "${model}": {} }
    }
  }
}`;

const aiSdk = (v1: string) => `const apiKey = process.env.TOLLGATE_KEY;
createOpenAI({ baseURL: "${v1}", apiKey });
createAnthropic({ baseURL: "${v1}", apiKey });
createOpenAICompatible({ name: "tollgate", baseURL: "${v1}", apiKey, includeUsage: true });`;

const langChain = (address: string, v1: string, model: string) => `const apiKey = process.env.TOLLGATE_KEY;
new ChatOpenAI({ model: "${model}", apiKey, configuration: { baseURL: "${v1}" } });
new ChatAnthropic({ model: "${model}", apiKey, anthropicApiUrl: "${address}" });`;

const curl = (v1: string, key: string, model: string) => `curl ${v1}/chat/completions \\
  -H "authorization: Bearer ${key}" \\
  -H "content-type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;

/** Generates docs/vendor-dialects.md from the goldens of `test/golden/dialects`; `npm run dialects` writes it. */
import { writeFileSync } from "node:fs";
import { type Dialect, dialects, isRefused } from "../e2e/protocol/dialects/goldens.ts";

export const FILE = "docs/vendor-dialects.md";

const INTRO = `# What vendors' servers send

Forms of replies, streams and errors that servers really send. Forms of usage are in [usage-forms.md](usage-forms.md).

Each row has a golden, \`test/golden/dialects/<vendor>/<name>.json\`: the answer in the vendor's form with neutral text, and what a client
must get from it. \`test/e2e/protocol/dialects/\` sends it through a running gateway to a client of each of the three protocols, whole
and streamed if the form has both. The official SDKs (\`openai\`, \`@anthropic-ai/sdk\`) check text, reasoning, calls with the digits of
their arguments, end and usage, or the refusal. [translation-rules.md](translation-rules.md) says what Tollgate does with these forms
and why.

\`npm run dialects\` writes this page from the goldens, and a test compares the two. Dates are those of the recording or of the report;
*read* is the day on which a source without a date was read. Some sources have only the text of an error. The rest of that error is
taken from the row's other sources, else from the protocol.

- **own**: what is different for a client of the server's own protocol. *As sent*: it gets what the server wrote, because the official SDK
  reads no more of it when it talks to the vendor directly.
- **a refusal**: the code or the cause that the client gets, and the status; *in the stream*: after the response headers.
`;

const MEANS: Readonly<Record<string, string>> = {
  calls: "calls",
  refused: "refusal",
  stop: "end",
  truncated: "truncation",
};

function understood({ expect }: Dialect): string {
  if (isRefused(expect)) {
    const { means, status } = expect.error;
    return `\`${means}\`, ${status ?? "in the stream"}`;
  }
  const parts = [expect.reasoning && "reasoning", expect.text && "text", ...expect.calls.map(() => "call")];
  return [...parts.filter((part) => part), MEANS[expect.end]].join(", ");
}

function ownOf({ own }: Dialect): string {
  if (own === undefined || own === "as sent") return own ?? "";
  return Object.entries(own)
    .map(([name, value]) => (name === "end" ? `ends with \`${value}\`` : `${name} as sent`))
    .join(", ");
}

function row(golden: Dialect): string {
  const { name, protocol, form, source, date } = golden;
  const sources = source.map((url) => `<${url}>`).join(", ");
  return `| \`${name}\` | ${protocol} | ${form} | ${understood(golden)} | ${ownOf(golden)} | ${sources} | ${date} |\n`;
}

/** The whole page. */
export function dialectsDocument(): string {
  const all = dialects();
  const vendors = Map.groupBy(all, ({ vendor }) => vendor);
  const head =
    "| golden | protocol | form | a client gets | own | source | date |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  const sections = [...vendors].map(([vendor, goldens]) => `\n## ${vendor}\n\n${head}${goldens.map(row).join("")}`);
  return `${INTRO}\n${all.length} forms of ${vendors.size} vendors and servers.\n${sections.join("")}`;
}

if (import.meta.main) writeFileSync(FILE, dialectsDocument());

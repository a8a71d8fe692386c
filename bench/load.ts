/**
 * The client: keeps a number of connections busy until a number of requests are answered, and checks every answer. Runs in its own
 * process, started by `run.ts`; takes one `Load` at a time from its parent and returns one `LoadResult`.
 */
import { Agent, request } from "node:http";

export interface Load {
  /** The full URL of the POST. */
  readonly url: string;
  readonly key: string;
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Used in turn in place of `key`. */
  readonly keys?: readonly string[] | undefined;
  readonly body: string;
  readonly requests: number;
  readonly connections: number;
  /** Whether a refusal is allowed; subjects that it is compared with answer. */
  readonly refusable: boolean;
}

export interface LoadResult {
  readonly answered: number;
  readonly seconds: number;
  /** Bytes of one answer's body, the same for all. */
  readonly bodyBytes: number;
  /** What was wrong with the first answer that differed from the others, if any. */
  readonly problem: string | undefined;
}

/** How much of a wrong answer is shown. */
const SHOWN_CHARS = 300;

function post(load: Load, key: string, agent: Agent): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...load.headers,
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(load.body),
    };
    const req = request(load.url, { method: "POST", agent, headers }, (res) => {
      const pieces: Buffer[] = [];
      res.on("data", (piece: Buffer) => pieces.push(piece));
      res.on("end", () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(pieces) }));
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(load.body);
  });
}

async function run(load: Load): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  let left = load.requests;
  let answered = 0;
  let bodyBytes = -1;
  let problem: string | undefined;
  const worker = async (): Promise<void> => {
    while (left-- > 0 && problem === undefined) {
      const { status, body } = await post(load, load.keys?.[left % load.keys.length] ?? load.key, agent);
      if (bodyBytes === -1 && status === 200) bodyBytes = body.length;
      const refused = load.refusable && (status === 401 || status === 429);
      if (!refused && (status !== 200 || body.length !== bodyBytes)) {
        problem = `${status}, ${body.length} bytes: ${body.toString().slice(0, SHOWN_CHARS)}`;
        return;
      }
      answered++;
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: load.connections }, worker)).catch((error: unknown) => {
    problem = String(error);
  });
  const seconds = (performance.now() - startedMs) / 1_000;
  agent.destroy();
  return { answered, seconds, bodyBytes, problem };
}

process.on("message", (load: Load) => void run(load).then((result) => process.send?.(result)));
process.on("disconnect", () => process.exit(0));

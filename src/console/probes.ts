/** The endpoints for monitoring on the admin listener: liveness, readiness and metrics. */
import type { ReadinessAnswer } from "./answers/answers.ts";

export interface ProbeParts {
  /** The metrics page. @param accept the scraper's `accept` header: it selects the exposition format */
  readonly metrics: (accept: string | undefined) => Promise<{ contentType: string; body: string }>;
  /** Whether the gateway should get traffic, and if not, why. */
  readonly readiness: () => ReadinessAnswer;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

interface Probe {
  readonly access: "anyone" | "metrics";
  /** @param accept the `accept` header */
  readonly answer: (parts: ProbeParts, accept: string | undefined) => Promise<ProbeAnswer>;
}

/** By path; all are GET. */
export const PROBES = {
  "/healthz": { access: "anyone", answer: async () => json(200, { alive: true }) },
  "/readyz": {
    access: "anyone",
    async answer({ readiness }) {
      const answer = readiness();
      return json(answer.ready ? 200 : 503, answer);
    },
  },
  "/metrics": {
    access: "metrics",
    answer: async ({ metrics }, accept) => ({ status: 200, ...(await metrics(accept)) }),
  },
} as const satisfies Record<string, Probe>;

const json = (status: number, body: object): ProbeAnswer => ({
  status,
  contentType: "application/json; charset=utf-8",
  body: JSON.stringify(body),
});

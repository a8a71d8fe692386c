/**
 * How `POST /v1/responses/compact` differs from `POST /v1/responses`: admitted, held for, charged and relayed the same
 * way, at another path of the upstream, never streamed and without an output limit.
 */
import { readEnvelopeInTurns } from "../accept/envelope.ts";
import { noCompaction, openCompaction } from "../convert/responses/compact.ts";
import type { ModelEndpoint } from "../request/run.ts";
import { isRefusal, refusal } from "../values/errors.ts";

export const COMPACT: ModelEndpoint = {
  pathSuffix: "/compact",
  open: openCompaction,
  async read(protocol, body) {
    const read = await readEnvelopeInTurns(protocol, body);
    if (isRefusal(read)) return read;
    if (read.envelope.stream) {
      return refusal("unsupported_parameter", { param: "stream", detail: "A compaction is not streamed." });
    }
    // No member limits the output, so the most that the model can give is held for.
    const limit = { field: "max_output_tokens", value: Number.MAX_SAFE_INTEGER, implied: true };
    return { ...read, envelope: { ...read.envelope, limit } };
  },
  refused(refused, attempts) {
    const status = attempts.at(-1)?.status;
    return status === 404 || status === 405 ? noCompaction() : refused;
  },
};

/** How many tokens an input may have: the maximum, a likely figure, and the worst case. Never reads content. */
import type { Model } from "../values/catalog.ts";
import type { Envelope, MediaPiece } from "../values/members/envelope.ts";

const ESTIMATE_BYTES_PER_TOKEN = 4;
/** Code comes to 0.37. */
const DENSE_TOKENS_PER_BYTE = 0.42;
/** An image of unknown size, such as one at a URL: more than 12 megapixels cost by the most expensive rule seen. */
const IMAGE_UNKNOWN_TOKENS = 16_384;

/** Tokens of an input. */
export interface InputTokens {
  /** The maximum, capped at the context. */
  readonly inputTokens: number;
  /** The number that the hold covers: the same, or more if the input is probably larger than the context. */
  readonly heldTokens: number;
  /** At 4 bytes each. */
  readonly inputEstimate: number;
}

/**
 * The input including what is not in the body: the forms of typed tools, and what the operator's rules may add (the
 * model's and its routes', and `addedBytes` of a group's).
 */
export function inputOf(facts: Envelope, model: Model, addedBytes: number): InputTokens {
  const { inputBytesPerToken, contextTokens } = model;
  const { textBytes, media, formBytes = 0 } = facts;
  const added = model.addedInputBytes + addedBytes + formBytes;
  const readings = facts.compacts ? 2 : 1;
  // What a server reads in addition to the body may fill its whole context, and so may a file of unknown size.
  const stored = facts.readsStored ? contextTokens : 0;
  const text = Math.ceil((textBytes + added) / inputBytesPerToken);
  const dense = Math.ceil(denseTokens(facts) + added / inputBytesPerToken);
  const heldMedia = media.length === 0 ? 0 : sumOf(media, (piece) => heldTokens(piece, model));
  const likelyMedia = media.length === 0 ? 0 : sumOf(media, (piece) => likelyTokens(piece, model));
  const likelyText = Math.ceil((textBytes + added) / ESTIMATE_BYTES_PER_TOKEN);
  const most = Math.max(text, dense) + heldMedia + stored;
  const apparent = Math.min(likelyText, sampledTokens(facts, added)) + likelyMedia;
  return {
    inputTokens: Math.min(contextTokens, most) * readings,
    heldTokens: Math.min(mostTokens(model, apparent), most) * readings,
    inputEstimate: Math.min(contextTokens, likelyText + likelyMedia) * readings,
  };
}

/**
 * The most that is held for one reading: the context, unless the input is probably larger. Most servers refuse such an
 * input, and it costs nothing. A server that accepts more than the configured context, for example through a beta,
 * bills all of it.
 */
function mostTokens({ contextTokens }: Pick<Model, "contextTokens">, apparent: number): number {
  return Math.max(contextTokens, apparent);
}

/**
 * Tokens of the text by its sample, which escapes and blanks do not increase. Infinity if the text is too short for a
 * sample.
 */
function sampledTokens({ textTokens }: Envelope, addedBytes: number): number {
  return textTokens > 0 ? Math.ceil(textTokens + addedBytes / ESTIMATE_BYTES_PER_TOKEN) : Number.POSITIVE_INFINITY;
}

/** Tokens by the sample if the text is much denser than prose and code; otherwise 0. */
function denseTokens({ textBytes, textTokens }: Envelope): number {
  return textTokens > textBytes * DENSE_TOKENS_PER_BYTE ? textTokens : 0;
}

/**
 * The worst case of the input, without estimates: one token per byte, or the whole context if any part is not text.
 * @param toolCalls maximum of hosted tool calls. After each call, the model reads everything again together with the
 *   call's result, up to its context.
 */
export function worstCaseInput(facts: Envelope, model: Model, addedBytes: number, toolCalls: number): number {
  const bytes = facts.textBytes + model.addedInputBytes + addedBytes + (facts.formBytes ?? 0);
  const most = mostTokens(
    model,
    Math.min(Math.ceil(bytes / ESTIMATE_BYTES_PER_TOKEN), sampledTokens(facts, bytes - facts.textBytes)),
  );
  const isText = facts.media.length === 0 && !facts.readsStored && toolCalls === 0;
  return (isText ? Math.min(most, bytes) : most) * ((facts.compacts ? 2 : 1) + toolCalls);
}

function sumOf(pieces: readonly MediaPiece[], tokensOf: (piece: MediaPiece) => number): number {
  let sum = 0;
  for (const piece of pieces) sum += tokensOf(piece);
  return sum;
}

/** The most that an image or a file can cost. If its size is hidden, the hold uses the largest plausible size. */
function heldTokens({ kind, tokens }: MediaPiece, { mediaTokens, contextTokens }: MediaModel): number {
  const { image, imageMax, file, fileMax } = mediaTokens;
  if (kind === "image") return Math.min(Math.max(image, tokens ?? IMAGE_UNKNOWN_TOKENS), imageMax ?? contextTokens);
  return Math.min(Math.max(file, tokens ?? contextTokens), fileMax ?? contextTokens);
}

/** The typical cost, used for the bill if nothing was counted. A hold covers twice what files usually cost. */
function likelyTokens(piece: MediaPiece, model: MediaModel): number {
  const { image, file } = model.mediaTokens;
  const figure = piece.kind === "image" ? image : file;
  const likely = piece.tokens === undefined ? figure : piece.kind === "image" ? piece.tokens : piece.tokens / 2;
  return Math.min(heldTokens(piece, model), Math.ceil(likely));
}

type MediaModel = Pick<Model, "mediaTokens" | "contextTokens">;

/** How many tokens an input may have: at most, likely, and at the dearest. Never reads content. */
import type { Model } from "../values/catalog.ts";
import type { Envelope, MediaPiece } from "../values/members/envelope.ts";

const ESTIMATE_BYTES_PER_TOKEN = 4;
/** Code comes to 0.37. */
const DENSE_TOKENS_PER_BYTE = 0.42;
/** An image whose size nothing tells, such as one behind an address: more than 12 megapixels cost at the dearest rule seen. */
const IMAGE_UNKNOWN_TOKENS = 16_384;

/** Tokens of an input. */
export interface InputTokens {
  /** At the most, within the context. */
  readonly inputTokens: number;
  /** What is held for: as many, or more where the input is larger than the context by all appearances. */
  readonly heldTokens: number;
  /** At 4 bytes each. */
  readonly inputEstimate: number;
}

/** The input with what the operator's rules may add to it: the model's and its routes', and `addedBytes` of a group's. */
export function inputOf(facts: Envelope, model: Model, addedBytes: number): InputTokens {
  const { inputBytesPerToken, contextTokens } = model;
  const { textBytes, media } = facts;
  const added = model.addedInputBytes + addedBytes;
  const readings = facts.compacts ? 2 : 1;
  // What a server reads beside the body may be its whole context, as a file of unknown size may.
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
 * The most that one reading is held for: the context, unless the input is larger than that by all appearances. Most servers refuse it,
 * and it costs nothing; one that takes more than is configured, as one may by a beta of its own, bills all of it.
 */
function mostTokens({ contextTokens }: Pick<Model, "contextTokens">, apparent: number): number {
  return Math.max(contextTokens, apparent);
}

/** What a text comes to by its sample, which escapes and blanks do not make larger; any number where it is too short for one. */
function sampledTokens({ textTokens }: Envelope, addedBytes: number): number {
  return textTokens > 0 ? Math.ceil(textTokens + addedBytes / ESTIMATE_BYTES_PER_TOKEN) : Number.POSITIVE_INFINITY;
}

/** A sample counts where it shows a text that is far denser than prose and code are. */
function denseTokens({ textBytes, textTokens }: Envelope): number {
  return textTokens > textBytes * DENSE_TOKENS_PER_BYTE ? textTokens : 0;
}

/**
 * The most that the input can be, estimates aside: a token a byte, or the whole context where anything is no text.
 * @param toolCalls of hosted tools, at most: after each the model reads all again, and what the tool has found, up to its context.
 */
export function dearestInput(facts: Envelope, model: Model, addedBytes: number, toolCalls: number): number {
  const bytes = facts.textBytes + model.addedInputBytes + addedBytes;
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

/** The most that an image or a file costs; what hides its size is held at the dearest that makes sense. */
function heldTokens({ kind, tokens }: MediaPiece, { mediaTokens, contextTokens }: MediaModel): number {
  const { image, imageMax, file, fileMax } = mediaTokens;
  if (kind === "image") return Math.min(Math.max(image, tokens ?? IMAGE_UNKNOWN_TOKENS), imageMax ?? contextTokens);
  return Math.min(Math.max(file, tokens ?? contextTokens), fileMax ?? contextTokens);
}

/** What it costs as a rule, for a bill when nobody counted: a hold covers twice what files mostly come to. */
function likelyTokens(piece: MediaPiece, model: MediaModel): number {
  const { image, file } = model.mediaTokens;
  const figure = piece.kind === "image" ? image : file;
  const likely = piece.tokens === undefined ? figure : piece.kind === "image" ? piece.tokens : piece.tokens / 2;
  return Math.min(heldTokens(piece, model), Math.ceil(likely));
}

type MediaModel = Pick<Model, "mediaTokens" | "contextTokens">;

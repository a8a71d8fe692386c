/** The client's headers that mean something to an upstream of its own protocol. Dispatch has the last word on names. */
import type { RequestHeaders } from "../accept/headers.ts";
import type { Protocol } from "../values/protocol.ts";

/**
 * The form of a beta's name. Any name of this form passes, known or not: clients use new ones before we hear of them,
 * and an upstream ignores what it does not know. What has another form is left out silently.
 */
const BETA_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Bytes of the joined list; names beyond are left out, so that a long list is shortened instead of lost whole. */
const BETA_LIST_LENGTH_MAX = 1_024;

/**
 * What goes upstream of a request's head: on messages the version, unchanged, and the betas. An upstream of another
 * protocol gets neither, and a messages upstream of a translated route gets dispatch's own version.
 */
export function forwardedHeaders(protocol: Protocol, headers: RequestHeaders): [string, string][] {
  if (protocol !== "messages") return [];
  const forwarded: [string, string][] = [];
  const version = headers.get("anthropic-version");
  if (version !== undefined) forwarded.push(["anthropic-version", version]);
  const betas = betaList(headers.all("anthropic-beta"));
  if (betas !== "") forwarded.push(["anthropic-beta", betas]);
  return forwarded;
}

/** One list of the header's lines, each a list of its own, in order and without repetitions. */
function betaList(lines: readonly string[]): string {
  const names = new Set(
    lines
      .flatMap((line) => line.split(","))
      .map((name) => name.trim())
      .filter((name) => BETA_NAME.test(name)),
  );
  let list = "";
  for (const name of names) {
    const longer = list === "" ? name : `${list},${name}`;
    if (longer.length > BETA_LIST_LENGTH_MAX) break;
    list = longer;
  }
  return list;
}

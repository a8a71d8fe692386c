/** Console sign-ins on Redis: one hash per owner. */
import { givesWay, mostOf, type NewSignIn, type SignInKind, type SignInOwner, type SignInRecord } from "../sign-ins.ts";
import type { Runner } from "./connection/runner.ts";
import { signInsKey } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

const fieldOf = (kind: SignInKind, id: string): string => `${kind}:${id}`;

export async function keepSignIn(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  { kind, id, data, lastsMs, only, was, by }: NewSignIn,
): Promise<"kept" | "too_many" | "unmet"> {
  const values = [
    fieldOf(kind, id),
    `${lastsMs ?? ""}`,
    data,
    `${mostOf(kind)}`,
    givesWay(kind) ? "1" : "",
    only ?? "",
    was ?? "",
    by === undefined ? "" : fieldOf(by.kind, by.id),
  ];
  const reply = await runner.script(scripts["sign-in-keep"], [signInsKey(owner)], values);
  return reply as "kept" | "too_many" | "unmet";
}

export async function takeSignIn(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  kind: SignInKind,
  id: string,
): Promise<SignInRecord | undefined> {
  const [taken] = await drop(runner, scripts, owner, [fieldOf(kind, id), ""]);
  return taken;
}

export async function findSignIn(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  kind: SignInKind,
  id: string,
): Promise<SignInRecord | undefined> {
  const reply = await runner.script(scripts["sign-ins-read"], [signInsKey(owner)], [fieldOf(kind, id)]);
  return recordsOf(reply)[0];
}

export async function listSignIns(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
): Promise<readonly SignInRecord[]> {
  return recordsOf(await runner.script(scripts["sign-ins-read"], [signInsKey(owner)], [""]));
}

export async function dropSignIn(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  ...[kind, id, keptByMs]: readonly [SignInKind, string, number?]
): Promise<boolean> {
  return (await drop(runner, scripts, owner, [fieldOf(kind, id), `${keptByMs ?? ""}`])).length > 0;
}

export async function dropSignIns(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  ...kinds: readonly SignInKind[]
): Promise<number> {
  const fields = kinds.map((kind) => fieldOf(kind, ""));
  return (await drop(runner, scripts, owner, [fields.join(""), ""])).length;
}

/** @param values see `lua/sign-in-drop.lua`. */
async function drop(
  runner: Runner,
  scripts: Scripts,
  owner: SignInOwner,
  values: readonly string[],
): Promise<SignInRecord[]> {
  return recordsOf(await runner.script(scripts["sign-in-drop"], [signInsKey(owner)], values));
}

function recordsOf(reply: unknown): SignInRecord[] {
  return (reply as readonly [string, string, string, string][]).map(([field, kept, over, data]) => {
    const colon = field.indexOf(":");
    return {
      kind: field.slice(0, colon) as SignInKind,
      id: field.slice(colon + 1),
      data,
      createdAtMs: Number(kept),
      expiresAtMs: over === "" ? undefined : Number(over),
    };
  });
}

/** What the commands ask and print that change an account: name, labels, suspend, resume, close. */

import type { JsonObject } from "../../values/json-object.ts";
import { COMMAND } from "../../values/program/program.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, labelWords } from "../admin-commands.ts";
import type { ConfirmName } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { cell, many } from "../output/table.ts";

export async function renameAccount(admin: AdminClient, name: string, to: string): Promise<CommandResult> {
  const { body } = await admin.call("PUT", `/accounts/${segment(name)}/name`, { name: to });
  return { json: body, text: `The account ${cell(name)} is called ${cell(body.name)}.\n` };
}

/**
 * @param pairs `name=value`, or `name=` to take a label away.
 * @throws CliFailure 2 for what is none of both
 */
export async function labelAccount(admin: AdminClient, name: string, pairs: readonly string[]): Promise<CommandResult> {
  const labels = pairs.map((pair): [string, string | null] => {
    const at = pair.indexOf("=");
    if (at < 1) throw new CliFailure(2, "A label must be NAME=VALUE, or NAME= to take it away.");
    return [pair.slice(0, at), pair.slice(at + 1) || null];
  });
  const { body } = await admin.call("PUT", `/accounts/${segment(name)}/labels`, { labels: Object.fromEntries(labels) });
  return { json: body, text: `The account ${cell(body.name)} has the labels: ${cell(labelWords(body.labels))}.\n` };
}

/** A host that a browser on another machine takes for its own. */
const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;
const HERE_ONLY =
  "The link's address is this machine's own: nobody elsewhere can open it. Set console.public_url to where owners find the console, and restart.\n";

export async function inviteOwner(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/invitations`);
  const until = `It opens once, until ${cell(body.ends_at)}; who has it is in.`;
  return {
    json: body,
    text: `${cell(body.link)}\nSend this link to the owner of the account ${cell(body.account)}. ${until}\n`,
    ...(LOOPBACK.test(new URL(String(body.link)).hostname) && { hint: HERE_ONLY }),
  };
}

/** Who is signed in to an account's console, and by what its owner may sign in. */
export async function listSessions(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/accounts/${segment(name)}/sessions`);
  const passkeys = (body.passkeys as readonly JsonObject[]).map(
    ({ name: called, used_at: used }) => `passkey ${cell(called)}, last used ${cell(used ?? "never")}`,
  );
  const sessions = (body.sessions as readonly JsonObject[]).map(
    ({ way, from, begun_at: begun, ends_at: ends }) =>
      `session by ${cell(way)} from ${cell(from || "nowhere")}, ${cell(begun)} to ${cell(ends)}`,
  );
  const lines = [...passkeys, ...sessions];
  const text = lines.length > 0 ? lines.join("\n") : `Nobody is signed in to the account ${cell(body.account)}.`;
  return { json: body, text: `${text}\n` };
}

/** @param options.passkeys whether they are removed, too. */
export async function signOutAccount(
  admin: AdminClient,
  name: string,
  options: { readonly passkeys?: true },
): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/sign-out`, options);
  const gone = `${many(body.sessions, "session")} ended, ${many(body.links, "link")} closed, ${many(body.passkeys, "passkey")} removed`;
  return { json: body, text: `The account ${cell(body.account)}: ${gone}.\n` };
}

export async function suspendAccount(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/suspend`);
  const until = `until:\n${COMMAND} account resume ${cell(body.name)}`;
  return { json: body, text: `The account ${cell(body.name)} is suspended, from its next request on, ${until}\n` };
}

export async function resumeAccount(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/resume`);
  return { json: body, text: `The keys of the account ${cell(body.name)} work again, from its next request on.\n` };
}

/**
 * @param confirm comes first; undefined: it has been said already.
 * @throws CliFailure 1 when that is not confirmed
 */
export async function closeAccount(
  admin: AdminClient,
  name: string,
  confirm: ConfirmName | undefined,
): Promise<CommandResult> {
  await confirm?.(() => closingQuestion(admin, name));
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/close`);
  const has = `It has ${cell(body.balance_usd)} USD, of which requests that still run hold ${cell(body.held_usd)}.`;
  return { json: body, text: `The account ${cell(body.name)} is closed for good, and its keys are revoked. ${has}\n` };
}

/** As the console asks it; undefined for an account that is closed already. */
async function closingQuestion(admin: AdminClient, account: string) {
  const { body } = await admin.call("GET", `/accounts/${segment(account)}`);
  if (body.status === "closed") return undefined;
  const name = String(body.name);
  const what = `Closing ${cell(name)}, which has ${cell(body.balance_usd)} USD, is final: its keys never work again, and it takes no more money.`;
  return { name, words: `${what}\nType its name to confirm` };
}

/** Commands that change an account: name, labels, sign-in, suspend, resume, close. */

import type { JsonObject } from "../../values/json-object.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, labelWords } from "../admin-commands.ts";
import type { ConfirmName } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { cell, many } from "../output/table.ts";

export async function renameAccount(admin: AdminClient, name: string, to: string): Promise<CommandResult> {
  const { body } = await admin.call("PUT", `/accounts/${segment(name)}/name`, { name: to });
  return { json: body, text: `The account ${cell(name)} is now named ${cell(body.name)}.\n` };
}

/**
 * @param pairs `name=value`, or `name=` to remove a label.
 * @throws CliFailure 2 for anything else
 */
export async function labelAccount(admin: AdminClient, name: string, pairs: readonly string[]): Promise<CommandResult> {
  const labels = pairs.map((pair): [string, string | null] => {
    const at = pair.indexOf("=");
    if (at < 1) throw new CliFailure(2, "A label must be NAME=VALUE, or NAME= to remove it.");
    return [pair.slice(0, at), pair.slice(at + 1) || null];
  });
  const { body } = await admin.call("PUT", `/accounts/${segment(name)}/labels`, { labels: Object.fromEntries(labels) });
  const hasNone = Object.keys(body.labels as object).length === 0;
  const labelled = hasNone ? "no labels" : `the labels: ${cell(labelWords(body.labels))}`;
  return { json: body, text: `The account ${cell(body.name)} has ${labelled}.\n` };
}

/** A host name that means the browser's own machine. */
const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;
const HERE_ONLY =
  "It opens only in a browser on the gateway's own machine, because its address is loopback. For owners elsewhere, set console.public_url in the gateway's configuration (tollgate.yaml), and restart it.\n";

export async function inviteOwner(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/invitations`);
  const until = `It works once, until ${cell(body.ends_at)}; anyone who has it can sign in.`;
  return {
    json: body,
    text: `${cell(body.link)}\nSend this link to the owner of the account ${cell(body.account)}. ${until}\n`,
    ...(LOOPBACK.test(new URL(String(body.link)).hostname) && { hint: HERE_ONLY }),
  };
}

/** Lists the sessions of an account's console and the passkeys of its owner. */
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

/** @param options.passkeys whether passkeys are removed too. */
export async function signOutAccount(
  admin: AdminClient,
  name: string,
  options: { readonly passkeys?: true },
): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/sign-out`, options);
  const gone = `${many(body.sessions, "session")} ended, ${many(body.links, "link")} revoked, ${many(body.passkeys, "passkey")} removed`;
  return { json: body, text: `The account ${cell(body.account)}: ${gone}.\n` };
}

export async function suspendAccount(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/suspend`);
  const resume = `To resume it:\n${admin.command} account resume ${cell(body.name)}`;
  return {
    json: body,
    text: `The account ${cell(body.name)} is suspended, effective from its next request. ${resume}\n`,
  };
}

export async function resumeAccount(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/resume`);
  return {
    json: body,
    text: `The keys of the account ${cell(body.name)} work again, effective from their next request.\n`,
  };
}

/**
 * @param confirm asks for confirmation first; undefined: already confirmed.
 * @throws CliFailure 1 if it is not confirmed
 */
export async function closeAccount(
  admin: AdminClient,
  name: string,
  confirm: ConfirmName | undefined,
): Promise<CommandResult> {
  await confirm?.(() => closingQuestion(admin, name));
  const { body } = await admin.call("POST", `/accounts/${segment(name)}/close`);
  const has = `Its balance is ${cell(body.balance_usd)} USD, of which running requests hold ${cell(body.held_usd)}.`;
  const left = Number(body.balance_usd) > 0 ? payOut(admin.command, cell(body.name)) : "";
  return {
    json: body,
    text: `The account ${cell(body.name)} is permanently closed, and its keys are revoked. ${has}\n${left}`,
  };
}

const payOut = (command: string, name: string): string =>
  `To pay out what it has left, use a negative amount: ${command} account adjust ${name} --usd -AMOUNT --id ID --note WHY\n`;

/** The same question as in the console; undefined if the account is already closed. */
async function closingQuestion(admin: AdminClient, account: string) {
  const { body } = await admin.call("GET", `/accounts/${segment(account)}`);
  if (body.status === "closed") return undefined;
  const name = String(body.name);
  const what = `Closing ${cell(name)}, which has ${cell(body.balance_usd)} USD, is final: its keys never work again, and it accepts no more money.`;
  return { name, words: `${what}\nType its name to confirm` };
}

/** The account's records: that they can be read, and that it and its keys are found where they are looked for. */
import type { AccountCheck } from "./snapshot.ts";

/** `unreadable`: a record that does not hold what it must, such as an amount that is no number. */
const unreadable: AccountCheck = ({ figures }) =>
  figures.unreadable.map((name) => ({
    check: "unreadable",
    line: undefined,
    about: name,
    what: `The record ${name} cannot be read.`,
  }));

/** `account_name`: the name under which it is found is its own. */
const accountName: AccountCheck = ({ figures: { account }, foundAs }) => {
  if (foundAs === undefined || foundAs === account.name) return [];
  return [
    { check: "account_name", line: undefined, what: `It is found as ${foundAs}, and calls itself ${account.name}.` },
  ];
};

/** `key_index`: a key that works is found by its id, or nobody could revoke it. */
const keyIndex: AccountCheck = ({ figures }) =>
  figures.keys
    .filter(({ id, hash, hashOfId, idOfHash }) => hashOfId !== hash || idOfHash !== id)
    .map(({ id, idOfHash }) => {
      const lost = `The key ${id || "without an id"} is listed, and there is no such key.`;
      const hidden = `The key ${id} works and is not found by its id: it can be neither moved nor revoked.`;
      return { check: "key_index", line: undefined, about: id, what: idOfHash === id ? hidden : lost };
    });

export const recordChecks: readonly AccountCheck[] = [unreadable, accountName, keyIndex];

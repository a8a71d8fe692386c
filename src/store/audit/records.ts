/** The account's records: they can be read, and the account and its keys can be found. */
import type { AccountCheck } from "./snapshot.ts";

/** `unreadable`: a record with invalid contents, such as an amount that is not a number. */
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
    {
      check: "account_name",
      line: undefined,
      what: `The account is found as ${foundAs}, but its own record has the name ${account.name}.`,
    },
  ];
};

/** `key_index`: a working key can be found by its id; otherwise it could not be revoked. */
const keyIndex: AccountCheck = ({ figures }) =>
  figures.keys
    .filter(({ id, hash, hashOfId, idOfHash }) => hashOfId !== hash || idOfHash !== id)
    .map(({ id, idOfHash }) => {
      const lost = `The key ${id || "without an id"} is listed, but there is no such key.`;
      const hidden = `The key ${id} works, but cannot be found by its id: it can be neither moved nor revoked.`;
      return { check: "key_index", line: undefined, about: id, what: idOfHash === id ? hidden : lost };
    });

export const recordChecks: readonly AccountCheck[] = [unreadable, accountName, keyIndex];

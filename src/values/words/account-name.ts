/** The form of an account's name. */

/** 1 to 64 characters of A-Z a-z 0-9 . _ @ + -, the first a letter or digit. */
export const ACCOUNT_NAME = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;

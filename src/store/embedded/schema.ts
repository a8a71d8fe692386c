/**
 * The tables of the embedded store. What must outlive the process is here; holds, buckets and requests in flight live
 * in memory (`live.ts`) and start empty.
 */

/** What leads from each version to the next; a new folder takes every step. */
export const SCHEMA_STEPS: readonly string[] = [
  `
CREATE TABLE accounts (
  tag TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, plan TEXT NOT NULL,
  bal INTEGER NOT NULL DEFAULT 0 CHECK (bal >= 0), spent INTEGER NOT NULL DEFAULT 0, topped INTEGER NOT NULL DEFAULT 0,
  seq INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
  tag TEXT NOT NULL, hash TEXT NOT NULL, id TEXT NOT NULL, grp TEXT NOT NULL, status TEXT NOT NULL,
  created INTEGER NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (tag, hash), UNIQUE (tag, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE entitlements (
  tag TEXT NOT NULL, id TEXT NOT NULL, plan TEXT NOT NULL, grp TEXT NOT NULL, starts INTEGER NOT NULL,
  ends INTEGER NOT NULL, quota INTEGER, spent INTEGER NOT NULL DEFAULT 0, listed INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (tag, id), CHECK (quota IS NULL OR spent <= quota)
) STRICT, WITHOUT ROWID;
CREATE TABLE settled (
  tag TEXT NOT NULL, rid TEXT NOT NULL, amount INTEGER NOT NULL, record TEXT NOT NULL, expires INTEGER NOT NULL,
  PRIMARY KEY (tag, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_expires ON settled (expires);
CREATE TABLE ledger (
  tag TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, debit TEXT NOT NULL,
  credit TEXT NOT NULL, amount INTEGER NOT NULL, bal INTEGER NOT NULL, ref TEXT NOT NULL, grp TEXT NOT NULL,
  model TEXT NOT NULL, key TEXT NOT NULL, memo TEXT NOT NULL, PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE payments (
  tag TEXT NOT NULL, id TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (tag, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE days (
  tag TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (tag, day, field)
) STRICT, WITHOUT ROWID;
`,
  `
CREATE TABLE codes (
  hash TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, card TEXT NOT NULL, plan TEXT NOT NULL, grp TEXT NOT NULL,
  lasts INTEGER NOT NULL, starts TEXT NOT NULL, quota INTEGER, state TEXT NOT NULL DEFAULT 'unused',
  created INTEGER NOT NULL, tag TEXT, claimed INTEGER
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE accounts ADD COLUMN plan_revision INTEGER NOT NULL DEFAULT 1;
CREATE TABLE identity (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO identity (id) VALUES (lower(hex(randomblob(16))));
`,
  `
CREATE TABLE idempotency (
  tag TEXT NOT NULL, key TEXT NOT NULL, rid TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL,
  expires INTEGER NOT NULL, PRIMARY KEY (tag, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires);
`,
  `
CREATE TABLE epoch (
  one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL,
  past TEXT NOT NULL, stopped INTEGER NOT NULL
) STRICT;
`,
  `
ALTER TABLE days ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN cached_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
`,
  `
ALTER TABLE days ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN absorbed INTEGER NOT NULL DEFAULT 0;
`,
];

export const SCHEMA_VERSION = SCHEMA_STEPS.length;

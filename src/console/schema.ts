/**
 * The forms of everything that the admin API takes; those of what it answers are in `answers/`. Each `description` completes the sentence "must be ..." in a complaint,
 * and `x-remedy` says what to write instead, so the words are beside the rule that they explain.
 */
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from "typebox";
import { type Account, CODES_MAX, LABELS_MAX } from "../store/records.ts";
import { CURSOR_CHARS_MAX } from "./cursor.ts";

/** Accounts on one page at most: the store's own limit. */
export const ACCOUNTS_PAGE_MAX = 200;
/** Ledger lines on one page at most. */
export const LEDGER_PAGE_MAX = 1_000;
/** Codes on one page at most: the store's own limit. */
export const CODES_PAGE_MAX = 200;
/** Accounts whose usage one page sums up, at most. */
export const USAGE_PAGE_MAX = 200;
/** Keys on one page at most. */
export const KEYS_PAGE_MAX = 200;
/** Audit lines on one page at most. */
export const AUDIT_PAGE_MAX = 200;
/** Page size when none is asked for. */
export const PAGE_DEFAULT = 100;

const closed = { additionalProperties: false } as const;

const Name = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$",
  description: "1 to 64 characters of A-Z a-z 0-9 . _ @ + -, the first a letter or digit",
  "x-remedy": "Choose a name such as alice or team-7@example.com.",
  examples: ["alice"],
});

/** Names of plans, groups and cards: which ones exist is the configuration's to say. */
const Configured = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "the name of a plan, group or card of the configuration, as a string",
  "x-remedy": "Name one that stands in tollgate.yaml.",
  examples: ["pro"],
});

const KeyId = Type.String({
  pattern: "^key_[0-9A-Za-z]{18}$",
  description: "the id of a key: key_ and 18 letters or digits",
  "x-remedy": "Take the id from tollgate key list; never send the key itself.",
  examples: ["key_4tR0000abcXyZ01234"],
});

export const KeyName = Type.String({
  // No control or format character, none that turns the direction of what is printed after it, but the joiner of emoji; not blank.
  pattern: "^(?=.*[\\p{L}\\p{N}\\p{P}\\p{S}])[^\\s\\p{C}](?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,63}$",
  description: "a name for people, 1 to 64 printable characters, the first no space",
  "x-remedy": "Choose a name such as Laptop of Alice.",
  examples: ["Laptop of Alice"],
});

const Instant = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,3})?Z$",
  description: "an instant in UTC such as 2027-01-31T12:00:00Z",
  "x-remedy": "Write the date, T, the time and Z.",
  examples: ["2027-01-31T12:00:00Z"],
});

const UpstreamName = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  description: "the name of an upstream, 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or digit",
  "x-remedy": "Take the name from the configuration, or from tollgate usage --by upstream.",
  examples: ["east"],
});

const CodeId = Type.String({
  pattern: "^code_[0-9A-Za-z]{16}$",
  description: "the id of a code: code_ and 16 letters or digits",
  "x-remedy": "Take the id from tollgate code list; never send the code itself.",
  examples: ["code_0NsPaGdz8KfW2q1T"],
});

const BatchId = Type.String({
  pattern: "^batch_[0-9A-Za-z]{16}$",
  description: "the id of a batch: batch_ and 16 letters or digits",
  "x-remedy": "Take the id from tollgate code batch list.",
  examples: ["batch_0NsPaGdz8KfW2q1T"],
});

const Label = Type.String({
  // As a key's name, and longer.
  pattern: "^(?=.*[\\p{L}\\p{N}\\p{P}\\p{S}])[^\\s\\p{C}](?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,127}$",
  description: "a label for people, 1 to 128 printable characters, the first no space",
  "x-remedy": "Choose a label such as Spring fair 2027.",
  examples: ["Spring fair 2027"],
});

/** What a person typed; its form is judged by `values/code.ts` alone. */
const CodeText = Type.String({
  maxLength: 64,
  description: "a code, as a string such as XXXX-XXXX-XXXX-XXXX-X",
  "x-remedy": "Send the code as it was sold.",
  examples: ["XXXX-XXXX-XXXX-XXXX-X"],
});

const Day = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
  description: "a UTC day, YYYY-MM-DD",
  "x-remedy": "Write a day like 2026-08-31.",
  examples: ["2026-08-31"],
});

/** The text of an amount; its form is judged by `values/money.ts` alone. */
const Usd = Type.String({
  maxLength: 64,
  description: 'an amount of US dollars as a string, such as "10.00"',
  "x-remedy": 'Write the amount as a string, "10.00": a JSON number cannot carry money exactly.',
  examples: ["10.00"],
});

const PaymentId = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
  description: "your id of this payment: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
  "x-remedy": "Send the payment's own id; the same id never counts twice.",
  examples: ["pay_1"],
});

/** Whose answer holds a secret that is shown once: the id says that it is the same request again. */
const IdempotencyId = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
  description: "your id of this request: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
  "x-remedy": "Send the same id when you send the same request again; leave it out and each request counts anew.",
  examples: ["order-4711"],
});

const Note = Type.String({
  pattern: "^[^\\p{Cc}]{1,256}$",
  description: "1 to 256 characters without control characters",
  "x-remedy": "Say in a few words why the balance is adjusted; the ledger keeps it.",
  examples: ["refund of invoice 7"],
});

function wholeNumber(digits: number, description: string) {
  return Type.String({
    pattern: `^(0|[1-9][0-9]{0,${digits - 1}})$`,
    description,
    "x-remedy": "Write a whole number in digits.",
  });
}

/** Where a page that may end in the middle of an account goes on (`cursor.ts`). */
const Place = Type.String({
  pattern: `^[A-Za-z0-9_-]{1,${CURSOR_CHARS_MAX}}$`,
  description: "the `next` of an earlier page",
  "x-remedy": "Leave it out for the first page.",
});

const LabelName = "^[A-Za-z0-9_.-]{1,64}$";
const LABEL_NAME = "1 to 64 characters of A-Z a-z 0-9 . _ -";
const LabelValue = Type.String({
  // No control or format character, none that breaks a line, but the joiner of emoji; no blank at either end.
  pattern: "^[^\\s\\p{C}](?:(?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,126}[^\\s\\p{C}])?$",
  description: "a label's value, 1 to 128 printable characters, the first and the last no space",
  "x-remedy": "Send a short text, or null to take the label away.",
  examples: ["red"],
});

/** Labels to set or, with null, to take away; the others stay. */
export const NewLabels = Type.Object(
  {
    labels: Type.Unsafe<Readonly<Record<string, string | null>>>({
      type: "object",
      propertyNames: {
        pattern: LabelName,
        description: `an object whose members have names of ${LABEL_NAME}`,
        "x-remedy": "Choose names such as team or customer.number.",
      },
      additionalProperties: Type.Union([LabelValue, Type.Null()], {
        description: "a text of 1 to 128 printable characters, the first and the last no space, or null",
        "x-remedy": "Send a short text, or null to take the label away.",
      }),
      minProperties: 1,
      maxProperties: 2 * LABELS_MAX,
      description: `labels by name, 1 to ${2 * LABELS_MAX} of them; null takes one away`,
      "x-remedy": 'Send them as {"labels": {"team": "red"}}.',
      examples: [{ team: "red" }],
    }),
  },
  closed,
);
export const NewName = Type.Object({ name: Name }, closed);

/** What an operator types to sign in. */
export const ShownToken = Type.Object(
  {
    token: Type.String({
      pattern: "^[!-~]{1,512}$",
      description: "the admin token",
      "x-remedy": "It is admin_token of the configuration, or in the file admin-token of the data folder.",
    }),
  },
  closed,
);

/** How many snapshots of a stream are wanted. */
export const LiveQuery = Type.Object(
  { snapshots: Type.Optional(wholeNumber(3, "a whole number of snapshots, after which the stream ends")) },
  closed,
);

export const AccountPath = Type.Object({ name: Name }, closed);
export const KeyPath = Type.Object({ id: KeyId }, closed);

const Search = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "a part of the name, in any case, 1 to 64 characters",
  "x-remedy": "Leave it out for all of them.",
  examples: ["ali"],
});

export const AccountsQuery = Type.Object(
  {
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "a part of the name or of a label's value, in any case, 1 to 64 characters",
        "x-remedy": "Leave it out for all of them.",
        examples: ["ali"],
      }),
    ),
    label: Type.Optional(
      Type.String({
        maxLength: 256,
        pattern: `${LabelName.slice(0, -1)}(?:=.*)?$`,
        description: `a label as name=value, or its name alone for any value; a name has ${LABEL_NAME}`,
        "x-remedy": "Write it like team=red.",
        examples: ["team=red"],
      }),
    ),
    status: Type.Optional(
      Type.Unsafe<Account["status"]>({
        type: "string",
        enum: ["normal", "suspended", "closed"],
        description: "`normal`, `suspended` or `closed`",
        "x-remedy": "Leave it out for accounts of any status.",
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: 256,
        description: "the `next` of an earlier page",
        "x-remedy": "Leave it out for the first page.",
      }),
    ),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${ACCOUNTS_PAGE_MAX}`)),
  },
  closed,
);

export const KeysQuery = Type.Object(
  {
    search: Type.Optional(Search),
    group: Type.Optional(Configured),
    status: Type.Optional(
      Type.Unsafe<"normal" | "suspended" | "revoked">({
        type: "string",
        enum: ["normal", "suspended", "revoked"],
        description: "`normal`, `suspended` or `revoked`",
        "x-remedy": "Leave it out for keys of any status.",
      }),
    ),
    cursor: Type.Optional(KeyId),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${KEYS_PAGE_MAX}`)),
  },
  closed,
);

export const AuditQuery = Type.Object(
  {
    cursor: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    since: Type.Optional(Instant),
    after: Type.Optional(wholeNumber(15, "the number of a line: those that came behind it, oldest first")),
    run: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{12}$",
        description: "with after, the `run` of the answer that the number is from",
        "x-remedy": "Leave it out, or take it from an earlier answer.",
      }),
    ),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${AUDIT_PAGE_MAX}`)),
  },
  closed,
);

export const LedgerQuery = Type.Object(
  {
    after: Type.Optional(wholeNumber(15, "the number of a ledger line, 0 for the beginning; oldest first")),
    order: Type.Optional(
      Type.Unsafe<"oldest" | "newest">({
        type: "string",
        enum: ["oldest", "newest"],
        description: "`oldest` or `newest`: which lines come first; oldest where it is left out",
        "x-remedy": "Ask for order=newest or order=oldest.",
      }),
    ),
    before: Type.Optional(wholeNumber(15, "with order=newest, the number of a ledger line: the ones below it")),
    since: Type.Optional(Instant),
    limit: Type.Optional(wholeNumber(4, `a whole number from 1 to ${LEDGER_PAGE_MAX}`)),
  },
  closed,
);

const LineNumber = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "the number of a ledger line, as a whole number",
  "x-remedy": "Take it from the lines themselves: tollgate ledger archive does.",
});

export const NewArchive = Type.Object(
  {
    before: Day,
    after: LineNumber,
    through: LineNumber,
    sha256: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "the SHA-256 of the lines in hex",
      "x-remedy": "Send the digest of the lines that you have kept: tollgate ledger archive does.",
    }),
  },
  closed,
);

export const CodePath = Type.Object({ id: CodeId }, closed);
export const BatchPath = Type.Object({ id: BatchId }, closed);

export const CodesQuery = Type.Object(
  {
    batch: Type.Optional(BatchId),
    cursor: AccountsQuery.properties.cursor,
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${CODES_PAGE_MAX}`)),
  },
  closed,
);

export const BatchesQuery = Type.Object(
  {
    cursor: AccountsQuery.properties.cursor,
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${CODES_PAGE_MAX}`)),
  },
  closed,
);

/** What usage is summed up by. */
export const USAGE_BY = ["account", "group", "model", "key", "day", "upstream"] as const;
export type UsageBy = (typeof USAGE_BY)[number];

export const UsageQuery = Type.Object(
  {
    account: Type.Optional(Name),
    by: Type.Optional(
      Type.Unsafe<UsageBy>(
        Type.Union(
          USAGE_BY.map((by) => Type.Literal(by)),
          {
            description: `one of ${USAGE_BY.join(", ")}`,
            "x-remedy": "Leave it out for one line per account.",
          },
        ),
      ),
    ),
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    cursor: Type.Optional(Place),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${USAGE_PAGE_MAX}`)),
  },
  closed,
);

export const UpstreamUsageQuery = Type.Object(
  {
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    cursor: Type.Optional(Place),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${USAGE_PAGE_MAX}`)),
  },
  closed,
);

export const UpstreamPath = Type.Object({ upstream: UpstreamName }, closed);

/** An operator's word that the store is to be used as it is. */
export const StoreConfirmation = Type.Object(
  {
    confirm: Type.String({
      pattern: "^[0-9a-f]{12}$",
      description: "the 12 characters that tollgate store status shows",
      "x-remedy": "Look at the state first (tollgate store status); it says what to send.",
    }),
  },
  closed,
);

export const Explanation = Type.Object(
  {
    key_id: KeyId,
    model: Type.String({
      minLength: 1,
      maxLength: 512,
      description: "the name of a model, as a client would send it",
      "x-remedy": "Name the model as the client types it.",
    }),
    protocol: Type.String({
      pattern: "^(chat|messages|responses)$",
      description: "one of chat, messages, responses",
      "x-remedy": "Name the protocol that the client speaks.",
    }),
    max_tokens: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: "a whole number of output tokens",
        "x-remedy": "Leave it out for the model's default.",
      }),
    ),
    input_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2 ** 40,
        description: "a whole number of bytes",
        "x-remedy": "Leave it out for a short body.",
      }),
    ),
  },
  closed,
);

/** Accounts that one page of a verification looks at, at most. */
export const VERIFY_PAGE_MAX = 200;

export const VerifyQuery = Type.Object(
  {
    account: Type.Optional(Name),
    cursor: Type.Optional(Place),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${VERIFY_PAGE_MAX}`)),
  },
  closed,
);

export const MarksQuery = Type.Object({ account: Type.Optional(Name), cursor: Type.Optional(Place) }, closed);

export const NewCodes = Type.Object(
  {
    card: Configured,
    count: Type.Integer({
      minimum: 1,
      maximum: CODES_MAX,
      description: `a whole number from 1 to ${CODES_MAX}`,
      "x-remedy": `Ask for at most ${CODES_MAX} codes at a time.`,
      examples: [10],
    }),
    label: Type.Optional(Label),
    redeem_by: Type.Optional(Day),
    idempotency_id: Type.Optional(IdempotencyId),
  },
  closed,
);
export const NewGift = Type.Object(
  {
    card: Configured,
    id: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
        description: "your id of this gift: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
        "x-remedy":
          "Send the same id when you send the same request again; without one each request gives another card.",
        examples: ["sorry-4711"],
      }),
    ),
  },
  closed,
);
export const NewRedemption = Type.Object({ code: CodeText }, closed);
export const NewAccount = Type.Object({ name: Name, plan: Type.Optional(Configured) }, closed);
/** `null`: as the configuration says. */
export const NewThreshold = Type.Object({ below_usd: Type.Union([Usd, Type.Null()]) }, closed);
export const NewPlan = Type.Object({ plan: Configured }, closed);
export const NewKey = Type.Object(
  {
    group: Configured,
    name: Type.Optional(KeyName),
    expires_at: Type.Optional(Instant),
    idempotency_id: Type.Optional(IdempotencyId),
  },
  closed,
);
/** How long a key's old value works, where nothing is said, and at most. */
export const OVERLAP_S = 86_400;
const OVERLAP_S_MAX = 30 * 86_400;
export const NewKeyValue = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: OVERLAP_S_MAX,
        description: `how long the old value works on, a whole number of seconds from 0 to ${OVERLAP_S_MAX}`,
        "x-remedy": "Ask for at most 30 days; 0 ends the old value at once.",
        examples: [OVERLAP_S],
      }),
    ),
  },
  closed,
);
export const NewKeyName = Type.Object({ name: Type.Union([KeyName, Type.Null()]) }, closed);
export const NewKeyEnd = Type.Object({ expires_at: Type.Union([Instant, Type.Null()]) }, closed);
/** Models and addresses that a key's limits name at most. */
const LISTED_MAX = 64;

const noneOr = <S extends TSchema>(shape: S) => Type.Optional(Type.Union([shape, Type.Null()]));

function perMinute(what: string) {
  return Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: `a whole number from 1 to 1000000000: ${what}`,
    "x-remedy": "Leave it out, or send null, for no such limit.",
    examples: [60],
  });
}

export const NewKeyLimits = Type.Object(
  {
    budgets_usd: noneOr(
      Type.Object({ day: noneOr(Usd), week: noneOr(Usd), month: noneOr(Usd), total: noneOr(Usd) }, closed),
    ),
    requests_per_minute: noneOr(perMinute("requests per minute")),
    tokens_per_minute: noneOr(perMinute("tokens per minute")),
    concurrency: noneOr(perMinute("requests at once")),
    models: noneOr(
      Type.Array(
        Type.String({
          pattern: "^(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}|(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,126})?\\*)$",
          description: "the name of a model, or the beginning of names followed by one * at the end",
          "x-remedy": "Copy the name from the catalog.",
          examples: ["small-*"],
        }),
        {
          minItems: 1,
          maxItems: LISTED_MAX,
          description: `a list of 1 to ${LISTED_MAX} models`,
          "x-remedy": "Leave it out, or send null, for all models of the group.",
        },
      ),
    ),
    addresses: noneOr(
      Type.Array(
        Type.String({
          maxLength: 64,
          description: "an address, or a CIDR block, as a string such as 192.0.2.0/24",
          "x-remedy": "Name the network and the length of its prefix.",
          examples: ["192.0.2.0/24"],
        }),
        {
          minItems: 1,
          maxItems: LISTED_MAX,
          description: `a list of 1 to ${LISTED_MAX} addresses or CIDR blocks`,
          "x-remedy": "Leave it out, or send null, for any address.",
        },
      ),
    ),
  },
  closed,
);
export const NewAccountLimits = Type.Object(
  { budgets_usd: noneOr(Type.Object({ day: noneOr(Usd), month: noneOr(Usd) }, closed)) },
  closed,
);
export const NewGroup = Type.Object({ group: Configured }, closed);
export const NewTopup = Type.Object({ usd: Usd, id: PaymentId }, closed);
export const NewAdjustment = Type.Object({ usd: Usd, id: PaymentId, note: Note }, closed);

export type { Static, TObject, TProperties, TSchema, TUnsafe };
export { Type };

/* What owners ask in their console. */

/** Ledger lines that one page of the console has at most. */
export const OWN_LINES_MAX = 200;

export const SpanQuery = Type.Object({ since: Type.Optional(Day), until: Type.Optional(Day) }, closed);
export const OwnLinesQuery = Type.Object(
  {
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    key: Type.Optional(KeyId),
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: "the name of a model, as a client sends it",
        "x-remedy": "Name the model as a line does.",
      }),
    ),
    before: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${OWN_LINES_MAX}`)),
  },
  closed,
);
export const RequestPath = Type.Object(
  {
    id: Type.String({
      pattern: "^req_[0-9A-Za-z]{24}$",
      description: "the id of a request: req_ and 24 letters or digits",
      "x-remedy": "Copy it whole from the answer's x-request-id header, or from the message of an error.",
    }),
  },
  closed,
);
export const RequestQuery = Type.Object(
  { after: Type.Optional(wholeNumber(15, "the `next` of an earlier answer")) },
  closed,
);

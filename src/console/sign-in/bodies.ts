/** What browsers send to get in, and to change what lets them in. */
import { KeyName, Type } from "../vocabulary.ts";

const closed = { additionalProperties: false } as const;

/** What stands behind the `#` of a sign-in link. */
export const LinkToken = Type.Object(
  {
    token: Type.String({
      pattern: "^[A-Za-z0-9._-]{1,200}$",
      description: "what stands behind the # of a sign-in link",
      "x-remedy": "Open the link as it was sent.",
    }),
  },
  closed,
);

const PAGE_S_OWN = "Load the page again, and let it ask the browser.";

const Sealed = Type.String({
  maxLength: 1_024,
  description: "what the gateway gave with the question",
  "x-remedy": PAGE_S_OWN,
});

/** A browser's own answer (PublicKeyCredential.toJSON): what it has more is its own affair. */
const Credential = Type.Object(
  {
    id: Type.String({
      pattern: "^[A-Za-z0-9_-]{1,1364}$",
      description: "the passkey's id in base64url",
      "x-remedy": PAGE_S_OWN,
    }),
    response: Type.Object(
      {
        userHandle: Type.Optional(
          Type.Unsafe<string | null>({
            type: ["string", "null"],
            maxLength: 128,
            description: "whom the passkey names, in base64url",
            "x-remedy": PAGE_S_OWN,
          }),
        ),
      },
      { description: "an object", "x-remedy": PAGE_S_OWN },
    ),
  },
  { description: "what the browser's passkey answered", "x-remedy": PAGE_S_OWN },
);

export const PasskeyAnswer = Type.Object({ sealed: Sealed, credential: Credential }, closed);
export const NewPasskey = Type.Object({ sealed: Sealed, name: KeyName, credential: Credential }, closed);
export const PasskeyName = Type.Object({ name: KeyName }, closed);

/** Of a passkey or a session among what an account has. */
export const SignInPath = Type.Object(
  {
    id: Type.String({
      pattern: "^[A-Za-z0-9_-]{43}$",
      description: "the id of a passkey or a session",
      "x-remedy": "Take it from the list.",
    }),
  },
  closed,
);

export const SignOutOrder = Type.Object(
  {
    passkeys: Type.Optional(
      Type.Boolean({
        description: "whether the account's passkeys are removed, too, true or false",
        "x-remedy": "Leave it out to keep them.",
        examples: [true],
      }),
    ),
  },
  closed,
);

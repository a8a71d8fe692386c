/** Bodies that browsers send to sign in, and to change passkeys and sessions. */
import { KeyName, Type } from "../vocabulary.ts";

const closed = { additionalProperties: false } as const;

/** The part after the `#` of a sign-in link. */
export const LinkToken = Type.Object(
  {
    token: Type.String({
      pattern: "^[A-Za-z0-9._-]{1,200}$",
      description: "the part after the # of a sign-in link",
      "x-remedy": "Open the complete link.",
    }),
  },
  closed,
);

const PAGE_S_OWN = "Reload the page and try again.";

const Sealed = Type.String({
  maxLength: 1_024,
  description: "the sealed value that the gateway sent with the challenge",
  "x-remedy": PAGE_S_OWN,
});

/** The browser's answer (PublicKeyCredential.toJSON). Additional members are ignored. */
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
            description: "the user that the passkey names, in base64url",
            "x-remedy": PAGE_S_OWN,
          }),
        ),
      },
      { description: "an object", "x-remedy": PAGE_S_OWN },
    ),
  },
  { description: "the answer of the browser's passkey", "x-remedy": PAGE_S_OWN },
);

export const PasskeyAnswer = Type.Object({ sealed: Sealed, credential: Credential }, closed);
export const NewPasskey = Type.Object({ sealed: Sealed, name: KeyName, credential: Credential }, closed);
export const PasskeyName = Type.Object({ name: KeyName }, closed);

/** The path of a passkey or a session. */
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
        description: "whether to remove the account's passkeys too, true or false",
        "x-remedy": "Leave it out to keep them.",
        examples: [true],
      }),
    ),
  },
  closed,
);

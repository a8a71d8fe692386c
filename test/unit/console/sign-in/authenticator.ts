/** An authenticator in software (WebAuthn Level 3, section 6), which can be made to lie. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { type Attestation, type Attested, bytes, text } from "./attestation.ts";

/** What a lying authenticator or browser sends instead. */
export interface Lies {
  readonly origin?: string;
  readonly host?: string;
  readonly challenge?: string;
  readonly type?: string;
  readonly counter?: number;
  readonly isVerified?: boolean;
  readonly userHandle?: string;
  readonly key?: KeyObject;
  readonly crossOrigin?: boolean;
  /** Its attestation; none unless given. */
  readonly attest?: (attested: Attested) => Attestation;
}

interface Asked {
  readonly challenge: string;
  readonly rp?: { readonly id: string };
  readonly rpId?: string;
  readonly user?: { readonly id: string };
}

const FLAG = { present: 0x01, verified: 0x04, attested: 0x40 };

export class Authenticator {
  readonly id = randomBytes(32);
  readonly #keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  readonly #origin: string;
  /** 0 for one without a counter. */
  counter = 0;
  userHandle = "";

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Creates its passkey. */
  create(options: Asked, lies: Lies = {}): object {
    this.userHandle = options.user?.id ?? "";
    const client = this.#clientData("webauthn.create", options.challenge, lies);
    const { x = "", y = "" } = this.#keys.publicKey.export({ format: "jwk" });
    const [xBytes, yBytes] = [Buffer.from(x, "base64url"), Buffer.from(y, "base64url")];
    // COSE: {1: 2, 3: -7, -1: 1, -2: x, -3: y} (RFC 9052).
    const cose = Buffer.concat([
      Buffer.from("a5010203262001215820", "hex"),
      xBytes,
      Buffer.from("225820", "hex"),
      yBytes,
    ]);
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, this.id.length]), this.id, cose]);
    const data = Buffer.concat([this.#data(options.rp?.id ?? "", FLAG.attested, lies), attested]);
    const { format, statement } = lies.attest?.({
      data,
      clientDataHash: createHash("sha256").update(client).digest(),
      ...this.#keys,
    }) ?? { format: "none", statement: Buffer.from("a0", "hex") };
    // CBOR: {"fmt": text, "attStmt": map, "authData": bytes} (RFC 8949).
    const head = Buffer.from(`a3${text("fmt")}${text(format)}${text("attStmt")}`, "hex");
    const all = [head, statement, Buffer.from(text("authData"), "hex"), bytes(data)];
    const attestationObject = Buffer.concat(all).toString("base64url");
    return this.#credential({ clientDataJSON: b64(client), attestationObject, transports: ["internal"] });
  }

  /** Signs in. */
  get(options: Asked, lies: Lies = {}): object {
    const client = this.#clientData("webauthn.get", options.challenge, lies);
    const data = this.#data(options.rpId ?? "", 0, lies);
    const hash = createHash("sha256").update(client).digest();
    const signature = sign("sha256", Buffer.concat([data, hash]), lies.key ?? this.#keys.privateKey);
    const userHandle = lies.userHandle ?? this.userHandle;
    return this.#credential({
      clientDataJSON: b64(client),
      authenticatorData: b64(data),
      signature: b64(signature),
      userHandle,
    });
  }

  #clientData(type: string, challenge: string, lies: Lies): Buffer {
    const { origin = this.#origin, crossOrigin = false } = lies;
    const said = { type: lies.type ?? type, challenge: lies.challenge ?? challenge, origin, crossOrigin };
    return Buffer.from(JSON.stringify(said));
  }

  #data(host: string, flags: number, { host: other, counter = this.counter, isVerified = true }: Lies): Buffer {
    const head = Buffer.alloc(5);
    head[0] = flags | FLAG.present | (isVerified ? FLAG.verified : 0);
    head.writeUInt32BE(counter, 1);
    return Buffer.concat([
      createHash("sha256")
        .update(other ?? host)
        .digest(),
      head,
    ]);
  }

  #credential(response: object): object {
    const id = b64(this.id);
    return { id, rawId: id, type: "public-key", clientExtensionResults: {}, response };
  }
}

const b64 = (bytes: Buffer): string => bytes.toString("base64url");

/**
 * A real OpenID Connect provider (oidc-provider) on 127.0.0.1. Only this file imports it. It signs everyone in at once.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
// @ts-expect-error: the package has no types.
import Provider from "oidc-provider";

const CLIENT_ID = "tollgate";
const CLIENT_SECRET = "oidc-client-canary-0123456789";

export interface OidcOptions {
  /** Whether the claims are in the ID token as well, and not only in the userinfo. */
  readonly inToken?: boolean;
  /** The only way in which it lets a client authenticate; by default in a header. */
  readonly auth?: "client_secret_basic" | "client_secret_post";
}

export class OidcHere {
  readonly issuer: string;
  readonly clientId = CLIENT_ID;
  readonly clientSecret = CLIENT_SECRET;
  /** The claims of everyone who signs in. */
  claims: Readonly<Record<string, unknown>> = {};
  /** Claims that its userinfo endpoint returns in place of those. */
  userinfo: Readonly<Record<string, unknown>> = {};
  /** Whether its ID tokens are signed with a foreign key, like those of an impostor. */
  forges = false;
  /** Whether it refuses to sign anyone in. */
  refuses = false;
  /** Whether it accepts its codes more than once. */
  repeats = false;
  /** Whether its discovery document lacks the endpoints, as during a setup. */
  isHalf = false;
  /** A path whose responses begin with 2 MiB of blanks, which have no meaning in JSON. */
  pads = "";
  /** How often its discovery document was requested. */
  discoveries = 0;
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Serves from now on. @param redirect the allowed redirect URI. */
  serve(redirect: string, { inToken = false, auth = "client_secret_basic" }: OidcOptions = {}): void {
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          redirect_uris: [redirect],
          token_endpoint_auth_method: auth,
        },
      ],
      clientAuthMethods: [auth],
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username", "groups"] },
      conformIdTokenClaims: !inToken,
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ["a test's own"] },
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      findAccount: (_context: unknown, id: string) => ({
        accountId: id,
        claims: async (use: string) => ({ sub: id, ...this.claims, ...(use === "userinfo" && this.userinfo) }),
      }),
      async loadExistingGrant({ oidc }: GrantContext) {
        const { client, session } = oidc;
        const grant = new oidc.provider.Grant({ clientId: client?.clientId, accountId: session?.accountId });
        grant.addOIDCScope("openid email profile");
        await grant.save();
        return grant;
      },
    });
    const { consume } = provider.AuthorizationCode.prototype;
    const isTakenOnce = () => !this.repeats;
    provider.AuthorizationCode.prototype.consume = async function (this: object) {
      if (isTakenOnce()) await consume.call(this);
    };
    provider.use(async ({ path, response }: TokenContext, next: () => Promise<void>) => {
      await next();
      if (this.forges && path === "/token")
        response.body = { ...response.body, id_token: forged(response.body.id_token) };
    });
    provider.use(async ({ path, response }: JsonContext, next: () => Promise<void>) => {
      await next();
      if (path === this.pads) {
        response.body = " ".repeat(ANSWER_BYTES) + JSON.stringify(response.body);
        response.type = "application/json";
      }
    });
    const answer = provider.callback();
    this.#server.on("request", (request, response) => {
      if (request.url?.startsWith("/.well-known/")) this.discoveries++;
      // The package accepts both ways, whichever it names.
      const isElsewhere = auth === "client_secret_post" && request.headers.authorization !== undefined;
      if (isElsewhere && request.url === "/token") return void response.writeHead(401).end();
      if (this.isHalf) return void response.setHeader("content-type", "application/json").end(this.#half);
      if (!request.url?.startsWith("/interaction/")) return void answer(request, response);
      const result = this.refuses ? { error: "access_denied" } : { login: { accountId: "person-1" } };
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    });
  }

  get #half(): string {
    return JSON.stringify({ issuer: this.issuer, jwks_uri: `${this.issuer}/jwks` });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

const ANSWER_BYTES = 2_097_152;

interface JsonContext {
  readonly path: string;
  readonly response: { body: unknown; type: string };
}

interface TokenContext {
  readonly path: string;
  readonly response: { body: { readonly id_token: string } };
}

/** The same claims, signed with a key that is not published (RFC 7515). */
function forged(token: string): string {
  const words = token.split(".").slice(0, 2).join(".");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  return `${words}.${sign("sha256", Buffer.from(words), privateKey).toString("base64url")}`;
}

interface GrantContext {
  readonly oidc: {
    readonly client?: { readonly clientId: string };
    readonly session?: { readonly accountId: string };
    readonly provider: {
      readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<void> };
    };
  };
}

/** Reserves an address. Nothing answers there before `serve`. */
export async function startOidc(): Promise<OidcHere> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return new OidcHere(server);
}

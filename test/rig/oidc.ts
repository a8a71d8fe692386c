/** A real provider of OpenID Connect (oidc-provider) on 127.0.0.1. The only importer of it. Whoever comes is signed in at once. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
// @ts-expect-error: the package has no types.
import Provider from "oidc-provider";

const CLIENT_ID = "tollgate";
const CLIENT_SECRET = "oidc-client-canary-0123456789";

interface OidcOptions {
  /** Whether the claims are in the ID token, too, and not in the userinfo only. */
  readonly inToken?: boolean;
}

export class OidcHere {
  readonly issuer: string;
  readonly clientId = CLIENT_ID;
  readonly clientSecret = CLIENT_SECRET;
  /** What it says of whoever comes. */
  claims: Readonly<Record<string, unknown>> = {};
  /** Whether it refuses whoever comes. */
  refuses = false;
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Serves from now on. @param redirect where people may be sent back to. */
  serve(redirect: string, { inToken = false }: OidcOptions = {}): void {
    const provider = new Provider(this.issuer, {
      clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [redirect] }],
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username", "groups"] },
      conformIdTokenClaims: !inToken,
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ["a test's own"] },
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      findAccount: (_context: unknown, id: string) => ({
        accountId: id,
        claims: async () => ({ sub: id, ...this.claims }),
      }),
      async loadExistingGrant({ oidc }: GrantContext) {
        const { client, session } = oidc;
        const grant = new oidc.provider.Grant({ clientId: client?.clientId, accountId: session?.accountId });
        grant.addOIDCScope("openid email profile");
        await grant.save();
        return grant;
      },
    });
    const answer = provider.callback();
    this.#server.on("request", (request, response) => {
      if (!request.url?.startsWith("/interaction/")) return void answer(request, response);
      const result = this.refuses ? { error: "access_denied" } : { login: { accountId: "person-1" } };
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
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

/** Takes an address; nothing answers there before `serve`. */
export async function startOidc(): Promise<OidcHere> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return new OidcHere(server);
}

/**
 * OpenID Connect: the code flow with PKCE, state and nonce. Independent of the session that follows. The only importer
 * of openid-client.
 */
import * as client from "openid-client";
import { codedFailure } from "../../values/program/error-text.ts";
import type { OidcSettings } from "../../values/settings.ts";

/** What a visit to the provider must return with. It is sealed, and only the visitor's browser has it. */
export interface OidcFlow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The redirect URI. */
  readonly redirect: string;
}

/**
 * Why the person was not identified. `unreachable`: the provider did not answer; `refused`: the provider refused, or
 * its answer was not accepted.
 */
export class OidcFailure extends Error {
  override readonly name = "OidcFailure";
  readonly kind: "unreachable" | "refused";
  /** An error code of the protocol, the package or the system, for the log; never data that was sent. */
  readonly word: string;

  constructor(kind: OidcFailure["kind"], word: string) {
    super(`${kind}: ${word}`);
    this.kind = kind;
    this.word = word;
  }
}

type Claims = Readonly<Record<string, unknown>>;

const SCOPE = "openid profile email";
const TIMEOUT_S = 10;
/**
 * Maximum size of one answer after decompression. Typical answers, including keys with certificates, have some ten
 * thousand bytes.
 */
const ANSWER_BYTES_MAX = 1_048_576;

export class OidcProvider {
  readonly #settings: OidcSettings;
  #found: Promise<client.Configuration> | undefined;
  /** Number of requests to the provider so far. */
  #asks = 0;

  constructor(settings: OidcSettings) {
    this.#settings = settings;
  }

  /** The address to redirect a browser to, and what it must return with. @throws OidcFailure */
  async begin(redirect: string): Promise<{ readonly location: string; readonly flow: OidcFlow }> {
    const config = await this.#discovered();
    const flow = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
      redirect,
    };
    const challenge = await client.calculatePKCECodeChallenge(flow.verifier);
    const location = await this.#asking(async () =>
      client.buildAuthorizationUrl(config, {
        redirect_uri: redirect,
        scope: SCOPE,
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: challenge,
        code_challenge_method: "S256",
      }),
    );
    return { location: location.href, flow };
  }

  /**
   * The claims about the person who has returned: those of the ID token, or of the userinfo if the ID token lacks
   * `claim`.
   * @throws OidcFailure
   */
  async finish(query: string, { redirect, state, nonce, verifier }: OidcFlow, claim: string): Promise<Claims> {
    const config = await this.#discovered();
    const asksBefore = this.#asks;
    const isOfVisit = ({ word }: OidcFailure) => this.#asks === asksBefore || word === "invalid_grant";
    const tokens = await this.#asking(
      () =>
        client.authorizationCodeGrant(config, new URL(`${redirect}${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        }),
      isOfVisit,
    );
    const claims = tokens.claims();
    if (claims === undefined) throw new OidcFailure("refused", "no_id_token");
    const isElsewhere = claims[claim] === undefined && config.serverMetadata().userinfo_endpoint !== undefined;
    if (!isElsewhere) return claims;
    return this.#asking(() => client.fetchUserInfo(config, tokens.access_token, claims.sub));
  }

  /** The provider's metadata, cached; requested again after a failure. */
  #discovered(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const isPlain = new URL(issuer).protocol === "http:";
    this.#found ??= this.#asking(() =>
      client.discovery(new URL(issuer), clientId, undefined, authentication(clientSecret.reveal()), {
        timeout: TIMEOUT_S,
        [client.customFetch]: (...request) => {
          this.#asks++;
          return boundedFetch(...request);
        },
        execute: [client.enableNonRepudiationChecks, ...(isPlain ? [client.allowInsecureRequests] : [])],
      }),
    );
    return this.#found;
  }

  /**
   * Turns every failure of the package into an OidcFailure. It also drops the cached metadata, which may be the cause.
   * @param isOfVisit whether the failure is caused by what the browser returned with. Then the metadata stays: anyone
   *   can return with anything, and must not cause a new request to the provider each time.
   */
  async #asking<T>(work: () => Promise<T>, isOfVisit = (_failure: OidcFailure) => false): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failure = failureOf(error);
      if (!isOfVisit(failure)) this.#found = undefined;
      throw failure;
    }
  }
}

/**
 * The package reads answers completely, so an endless one would fill the memory until the timeout.
 * @throws OidcFailure
 */
async function boundedFetch(...[url, options]: Parameters<client.CustomFetch>): Promise<Response> {
  const answer = await fetch(url, options);
  if (answer.body === null) return answer;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new OidcFailure("refused", "answer_too_large");
    chunks.push(chunk);
  }
  const { status, statusText, headers } = answer;
  return new Response(Buffer.concat(chunks), { status, statusText, headers });
}

/** The client authentication that the provider supports: by header if possible, otherwise in the form. */
function authentication(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    return methods.includes("client_secret_basic") ? basic(server, ...rest) : post(server, ...rest);
  };
}

function failureOf(error: unknown): OidcFailure {
  const {
    error: said,
    code,
    name,
    cause,
  } = error as { error?: unknown; code?: unknown; name?: unknown; cause?: unknown };
  if (cause instanceof OidcFailure) return cause;
  const word = [said, code, name].find((one) => typeof one === "string" && WORD.test(one)) as string | undefined;
  // fetch throws a TypeError for every kind of failure.
  if (name === "TypeError") return new OidcFailure("unreachable", systemCodeOf(error) ?? word ?? "unknown");
  const isSilence = name === "TimeoutError" || code === "OAUTH_TIMEOUT" || isServerFault(error);
  return new OidcFailure(isSilence ? "unreachable" : "refused", word ?? "unknown");
}

const WORD = /^[A-Za-z_]{1,64}$/;

function systemCodeOf(error: unknown): string | undefined {
  const { code } = codedFailure(error);
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : undefined;
}

/** Whether the provider answered with a status of 500 or above. */
function isServerFault(error: unknown): boolean {
  const { status, cause } = error as { status?: unknown; cause?: { status?: unknown } };
  return [status, cause?.status].some((one) => typeof one === "number" && one >= 500);
}

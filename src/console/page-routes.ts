/** The document and the files of a set of pages, as routes below a path. */
import type { App, AppReply } from "./app.ts";
import { PAGE_PACKAGES, pageFiles } from "./page-files.ts";
import { AdminRefusal } from "./refusal.ts";

/** Nothing is loaded from other origins, no inline code runs, and no other site can frame the pages. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** The path of the admin API, which is all that an operator's pages call. */
export const ADMIN_PREFIX = "/admin/v1";

const FOR_GOOD = "public, max-age=31536000, immutable";

/**
 * Adds the routes of the pages.
 * @param root the path of the pages, without a slash at the end
 * @param entry the folder of `pages/` whose `main.ts` is run
 */
export function addPages(app: App, root: string, entry: "owner" | "operator"): void {
  const open = { config: { access: "anyone" as const }, schema: { hide: true } };
  // Created at the first request, like the files.
  let made: string | undefined;
  const document = (reply: AppReply) => {
    made ??= page(root, entry);
    return reply.headers(PAGE_HEADERS).type("text/html; charset=utf-8").send(made);
  };
  app.get(`${root}/assets/:digest/*`, open, async (request, reply) => {
    const { digest, "*": path } = request.params as { readonly digest: string; readonly "*": string };
    const known = pageFiles();
    const file = known.files.get(path);
    if (file === undefined || digest !== known.digest || !isOf(path, entry)) {
      throw new AdminRefusal(404, "unknown_path", "There is no such file.", "Reload the page: its files have changed.");
    }
    reply.headers({ "cache-control": FOR_GOOD, vary: "accept-encoding", "x-content-type-options": "nosniff" });
    reply.type(file.contentType);
    if (!/\bgzip\b/.test(request.headers["accept-encoding"] ?? "")) return reply.send(file.bytes);
    return reply.header("content-encoding", "gzip").send(file.gzipped);
  });
  app.get(root === "" ? "/" : root, open, async (_request, reply) => reply.redirect(`${root}/`, 308));
  app.get(`${root}/*`, open, async (_request, reply) => document(reply));
}

function page(root: string, entry: "owner" | "operator"): string {
  const { digest, files } = pageFiles();
  const assets = `${root}/assets/${digest}/`;
  const modules = [...files.keys()].filter((path) => /\.(?:ts|m?js)$/.test(path) && isOf(path, entry));
  const sheets = [...files.keys()].filter((path) => path.startsWith(`${entry}/`) && path.endsWith(".css"));
  return `<!doctype html>
<html lang="en" data-root="${root}"${entry === "operator" ? ` data-api="${ADMIN_PREFIX}"` : ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tollgate</title>
<link rel="icon" href="${assets}parts/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets}packages/${PAGE_PACKAGES["uplot.css"]}">
<link rel="stylesheet" href="${assets}parts/style.css">
${sheets.map((path) => `<link rel="stylesheet" href="${assets}${path}">`).join("\n")}
${modules.map((path) => `<link rel="modulepreload" href="${assets}${path}">`).join("\n")}
<script type="module" src="${assets}${entry}/main.ts"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The command line can do everything that it does: tollgate --help.</noscript>
</body>
</html>
`;
}

/** Whether the pages of `entry` need a file. Files of the other set are not served. */
function isOf(path: string, entry: "owner" | "operator"): boolean {
  const folder = path.slice(0, path.indexOf("/"));
  return folder === entry || folder === "parts" || folder === "texts" || folder === "packages";
}

/** `GET /admin/v1/audit`: who did what. */
import { AuditPage } from "../answers/answers.ts";
import { readInstant, readLimit } from "../input/parameters.ts";
import { malformed } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { closed, Instant, pageSize, type Static, Type, wholeNumber } from "../vocabulary.ts";
import { AUDIT_LINES_MAX, type Audit } from "./audit.ts";

/** Maximum number of audit lines per page. */
const AUDIT_PAGE_MAX = 200;

const AuditQuery = Type.Object(
  {
    cursor: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    since: Type.Optional(Instant),
    after: Type.Optional(wholeNumber(15, "the number of a line: the lines after it, oldest first")),
    run: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{12}$",
        description: "only with after: the `run` of the answer that has the number",
        "x-remedy": "Leave it out, or take it from an earlier answer.",
      }),
    ),
    limit: Type.Optional(pageSize(AUDIT_PAGE_MAX)),
  },
  closed,
);

export function auditRoutes(audit: Audit): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/audit",
      id: "listAudit",
      summary: "List the newest writes of operators and owners, newest first",
      description:
        `At most ${AUDIT_LINES_MAX} lines since this process started; the log has all of them. \`since\` leaves out older lines. ` +
        "`after` returns the lines after that one, oldest first; send it with the `run` of the answer that the number is from: " +
        "another process then begins with its first line.",
      query: AuditQuery,
      answers: { 200: AuditPage },
      async handle({ query }) {
        const limit = readLimit(query.limit, AUDIT_PAGE_MAX);
        assertOneDirection(query);
        const { runId: run, newest } = audit;
        if (query.after !== undefined) {
          const after = (query.run ?? run) === run ? Number(query.after) : 0;
          return { status: 200, body: { items: audit.behind(after, limit), next: null, run, newest } };
        }
        const sinceMs = query.since === undefined ? 0 : readInstant("since", query.since);
        const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : Number(query.cursor);
        const { items, next } = audit.page(before, limit, sinceMs);
        const body = { items, next: next === null ? null : String(next), run, newest };
        return { status: 200, body };
      },
    }),
  ];
}

/** @throws AdminRefusal 400 for parameters of the other direction */
function assertOneDirection({ after, run, cursor, since }: Static<typeof AuditQuery>): void {
  const others = after === undefined ? { run } : { cursor, since };
  const [name] = Object.entries(others).find(([, typed]) => typed !== undefined) ?? [];
  if (name === undefined) return;
  throw malformed(
    name,
    after === undefined ? "left out without after" : "left out with after",
    "Use either after and run, or cursor and since.",
  );
}

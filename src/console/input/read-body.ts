/** Bodies of requests to the consoles and the admin API: one JSON object, and no name in it twice. */
import { isJsonFault, JSON_LIMITS, type JsonFault, type JsonMember, readJson, scanJson } from "../../wire/json.ts";
import { AdminRefusal, printable } from "../refusal.ts";

/** None has more than five objects in each other, but for what browsers tell of a passkey. */
const LIMITS = { ...JSON_LIMITS, depthMax: 32 };
const OPEN_OBJECT = 0x7b;
/** What editors and shells of Windows write before a text. */
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

/**
 * Reads a body as JSON.parse does, behind a byte order mark perhaps. Of a name that is there twice JSON.parse takes the last, and
 * the program that sent it may mean the first: two amounts are none. Members of objects in arrays are not compared, no body has
 * any.
 * @throws AdminRefusal 400: no JSON object in UTF-8, or a name twice in one.
 */
export function readBody(sent: Buffer): unknown {
  const isMarked = sent.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const body = isMarked ? sent.subarray(BYTE_ORDER_MARK.length) : sent;
  const read = readJson(body, LIMITS);
  if ("fault" in read) throw refusalFor(read);
  const fault = faultInside(body, read.scan.members);
  if (fault !== undefined) throw refusalFor(fault);
  return read.json;
}

/** What is wrong with objects that are values of these members. */
function faultInside(body: Uint8Array, members: readonly JsonMember[]): JsonFault | undefined {
  for (const { valueStart, valueEnd } of members) {
    if (body[valueStart] !== OPEN_OBJECT) continue;
    const value = body.subarray(valueStart, valueEnd);
    const scan = scanJson(value, LIMITS);
    const fault = isJsonFault(scan) ? scan : faultInside(value, scan.members);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function refusalFor({ fault, name, reason }: JsonFault): AdminRefusal {
  if (fault === "duplicate_field") {
    return new AdminRefusal(
      400,
      "duplicate_member",
      `The body has \`${printable(name ?? "")}\` twice.`,
      "Send it once.",
    );
  }
  return new AdminRefusal(400, "not_json", `The body is not read: ${reason}`, "Send one JSON object.");
}

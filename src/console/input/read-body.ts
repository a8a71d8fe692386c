/** Reads bodies of requests to the consoles and the admin API: one JSON object without duplicate names. */
import { isJsonFault, JSON_LIMITS, type JsonFault, type JsonMember, readJson, scanJson } from "../../wire/json.ts";
import { AdminRefusal, printable } from "../refusal.ts";

/** No body has more than five levels of objects, except what browsers send about a passkey. */
const LIMITS = { ...JSON_LIMITS, depthMax: 32 };
const OPEN_OBJECT = 0x7b;
/** Editors and shells of Windows write it at the beginning of a text. */
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

/**
 * Reads a body like JSON.parse, after an optional byte order mark. If a name occurs twice, JSON.parse uses the last
 * value, but the sender may mean the first, for example of two amounts: so duplicates are refused. Members of objects
 * in arrays are not checked, because no body has any.
 * @throws AdminRefusal 400 if it is not a JSON object in UTF-8, or has a duplicate name
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

/** The first fault in objects that are values of these members. */
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
  return new AdminRefusal(400, "not_json", `The body cannot be read: ${reason}`, "Send one JSON object.");
}

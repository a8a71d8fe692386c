/**
 * IP addresses and CIDR blocks as texts of bits. A store's script compares these without knowing what an address is.
 */
import { isIP } from "node:net";
import { byText } from "../../values/collections/by-text.ts";

const ADDRESS_BITS = 128;
/**
 * IPv4 addresses are mapped into `::ffff:0:0/96`, so that both spellings of one have the same bits (RFC 4291, 2.5.5.2).
 */
const MAPPED_BITS = 96;
const MAPPED_PREFIX = "0".repeat(80) + "1".repeat(16);

/** An address as 128 characters `0` and `1`; empty for a text that is not an address. */
export const addressBits = byText(bitsOf);

/**
 * The bits that all addresses of a block begin with.
 * @param block `10.0.0.0/8`, `fd00::/8`, or a single address, which is a block by itself.
 * @returns undefined when the text is not a block, or when bits after its prefix are set.
 */
export function blockBits(block: string): string | undefined {
  const read = readBlock(block);
  return typeof read === "object" ? read.bits : undefined;
}

/**
 * Why a text is not a block: its address is invalid, its prefix length is invalid, or bits after the prefix are set.
 */
export type BlockFault = "address" | "prefix" | "bits";

/** @returns undefined when `blockBits` has an answer. */
export function blockFault(block: string): BlockFault | undefined {
  const read = readBlock(block);
  return typeof read === "object" ? undefined : read;
}

function readBlock(block: string): { readonly bits: string } | BlockFault {
  const [, address = "", length] = /^([^/%]*)(?:\/(.*))?$/s.exec(block) ?? [];
  const bits = bitsOf(address);
  if (bits === "") return "address";
  const offset = isIP(address) === 4 ? MAPPED_BITS : 0;
  const most = ADDRESS_BITS - offset;
  const prefix = length === undefined ? most : Number(length);
  if (length !== undefined && (!/^(?:0|[1-9][0-9]{0,2})$/.test(length) || prefix > most)) return "prefix";
  if (bits.slice(offset + prefix).includes("1")) return "bits";
  return { bits: bits.slice(0, offset + prefix) };
}

function bitsOf(text: string): string {
  const [address = ""] = text.split("%");
  const kind = isIP(address);
  if (kind === 0) return "";
  if (kind === 4) return MAPPED_PREFIX + bitsOfIpv4(address);
  const [head = "", tail] = address.split("::");
  const [before, after] = [groupsOf(head), groupsOf(tail ?? "")];
  return before + "0".repeat(ADDRESS_BITS - before.length - after.length) + after;
}

/** The bits of groups between colons; the last may be an IPv4 address. */
function groupsOf(text: string): string {
  if (text === "") return "";
  const bits = (group: string) => (group.includes(".") ? bitsOfIpv4(group) : binary(Number.parseInt(group, 16), 16));
  return text.split(":").map(bits).join("");
}

function bitsOfIpv4(address: string): string {
  return address
    .split(".")
    .map((byte) => binary(Number(byte), 8))
    .join("");
}

const binary = (value: number, width: number): string => value.toString(2).padStart(width, "0");

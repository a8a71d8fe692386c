/**
 * The disk as the journal uses it. Few calls, so that tests can make each of them fail and can lose what was not
 * synced.
 */
import { closeSync, constants, fdatasync, openSync, writeSync } from "node:fs";
import { open, readdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeFolder } from "../../store/folder-lock.ts";

/** A preallocated file: writing inside it needs no further space (docs/failure-model.md row F1). */
export interface DiskFile {
  /**
   * Writes all of `bytes` inside the preallocated space. The caller may reuse the buffer when this returns.
   * Throws the file system's error.
   */
  write(position: number, bytes: Uint8Array): void;
  /** Resolves when everything written before the call is on the disk. */
  sync(): Promise<void>;
  close(): void;
}

/** One folder. Names have no path; calls reject with the file system's error. */
export interface Disk {
  list(): Promise<readonly string[]>;
  /** Creates a file of this many zero bytes, durable together with its name. Leaves no file if it fails. */
  create(name: string, bytes: number): Promise<DiskFile>;
  /** At most `length` bytes from `position` on; fewer at the end of the file. */
  read(name: string, position: number, length: number): Promise<Buffer>;
  /** Appends to a file and creates it if it is missing; resolves when the bytes are on the disk. */
  append(name: string, bytes: Uint8Array): Promise<void>;
  /** Removes a file; no error if it does not exist. */
  remove(name: string): Promise<void>;
}

/**
 * Segments are filled in small pieces. Linux keeps what one call wrote as one piece of its page cache and scans the
 * whole piece for each later write into it. With pieces of a megabyte that costs 3 us per write and 10 us per sync;
 * with this size nothing measurable.
 */
const ZEROS = Buffer.alloc(64 * 1024);
const syncData = promisify(fdatasync);

/** The folder `dir` of this machine. It is created if it is missing, readable by this user only. */
export function nodeDisk(dir: string): Disk {
  makeFolder(dir);
  return {
    list: () => readdir(dir),
    async create(name, bytes) {
      const path = join(dir, name);
      const file = await open(path, "wx", 0o600);
      try {
        await fill(file, bytes);
        await file.sync();
      } catch (error) {
        await file.close();
        await unlink(path).catch(() => undefined);
        throw error;
      }
      await file.close();
      await syncFolder(dir);
      return segmentFile(path);
    },
    async read(name, position, length) {
      const file = await open(join(dir, name), "r");
      try {
        return await readFully(file, position, length);
      } finally {
        await file.close();
      }
    },
    async append(name, bytes) {
      const file = await open(join(dir, name), "a", 0o600);
      try {
        await file.appendFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await syncFolder(dir);
    },
    remove: (name) => rm(join(dir, name), { force: true }),
  };
}

type Handle = Awaited<ReturnType<typeof open>>;

/** Preallocates the file by writing zeros, because Node has no fallocate. */
async function fill(file: Handle, bytes: number): Promise<void> {
  for (let at = 0; at < bytes; ) {
    const { bytesWritten } = await file.write(ZEROS, 0, Math.min(ZEROS.length, bytes - at), at);
    at += bytesWritten;
  }
}

async function readFully(file: Handle, position: number, length: number): Promise<Buffer> {
  const { size } = await file.stat();
  const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, at, bytes.length - at, position + at);
    if (bytesRead === 0) return bytes.subarray(0, at);
    at += bytesRead;
  }
  return bytes;
}

/** A new file name is durable only after its folder has been synced. */
async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function segmentFile(path: string): DiskFile {
  const descriptor = openSync(path, constants.O_WRONLY);
  return {
    write(position, bytes) {
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, position + at);
    },
    sync: () => syncData(descriptor),
    close: () => closeSync(descriptor),
  };
}

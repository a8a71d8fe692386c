/**
 * A real nginx with the shipped file, `deploy/nginx.conf`, in which only addresses and paths of certificates and the
 * log are filled in. It runs in a temporary folder on free ports, and is stopped by process id.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type FrontProcess, makeCertificate, startProcess, untilReady } from "./front-files.ts";
import { freePorts } from "./ports.ts";

export const NGINX_FILE = fileURLToPath(new URL("../../deploy/nginx.conf", import.meta.url));
const SERVER_LINE = "server 127.0.0.1:8787 ";
const execute = promisify(execFile);

export interface NginxOptions {
  /** Gateways, as nginx writes them: `127.0.0.1:8787` or `unix:/path`. */
  readonly servers: readonly string[];
  /** Changes the shipped file again, for a test that shows what a line of it does. */
  readonly edit?: (text: string) => string;
}

export interface Nginx {
  /** HTTP/1.1 without TLS, which is not in the shipped file. */
  readonly url: string;
  readonly port: number;
  /** HTTP/2 and HTTP/1.1 over TLS, as shipped. */
  readonly tlsUrl: string;
  readonly tlsPort: number;
  /** The text of the temporary certificate. */
  readonly ca: string;
  /** The file with the servers, for deploy/drain.sh. */
  readonly file: string;
  /** The command for this nginx, to which `-t` or `-s reload` is added. */
  readonly command: readonly string[];
  /** Lines of its access log. */
  accessLog(): Record<string, unknown>[];
  errorLog(): string;
  stop(): Promise<void>;
}

/** Fills in what a test needs. @throws Error if the shipped file does not contain an expected line. */
function configured(options: NginxOptions, places: Record<"dir" | "certFile" | "keyFile", string>, ports: number[]) {
  const [plain, tls] = ports;
  let text = readFileSync(NGINX_FILE, "utf8");
  const put = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`deploy/nginx.conf no longer has \`${from}\``);
    text = text.replace(from, to);
  };
  const line = text.split("\n").find((each) => each.trim().startsWith(SERVER_LINE)) ?? "";
  const rest = line.trim().slice(SERVER_LINE.length);
  put(line, options.servers.map((server) => `    server ${server} ${rest}`).join("\n"));
  put("listen 443 ssl http2;", `listen 127.0.0.1:${tls} ssl http2;\n    listen 127.0.0.1:${plain};`);
  put("    listen [::]:443 ssl http2;\n", "");
  put("/etc/nginx/tollgate.crt", places.certFile);
  put("/etc/nginx/tollgate.key", places.keyFile);
  put("/var/log/nginx/tollgate.log", join(places.dir, "access.log"));
  return options.edit?.(text) ?? text;
}

/** The main file around it, with what every distribution has, inside the folder. For root the workers need a user. */
function mainFile(dir: string, included: string): string {
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `${user}worker_processes 1;
pid ${join(dir, "nginx.pid")};
error_log ${join(dir, "error.log")} warn;
events { worker_connections 1024; }
http {
${kinds.map((kind) => `  ${kind}_temp_path ${join(dir, kind)};`).join("\n")}
  include ${included};
}
`;
}

/** Starts nginx and resolves when it accepts connections. */
export async function startNginx(options: NginxOptions): Promise<Nginx> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-nginx-"));
  const { certFile, keyFile } = makeCertificate(dir);
  const ports = await freePorts(2);
  const [port, tlsPort] = ports as [number, number];
  const file = join(dir, "tollgate.conf");
  const main = join(dir, "nginx.conf");
  writeFileSync(file, configured(options, { dir, certFile, keyFile }, ports));
  writeFileSync(main, mainFile(dir, file));
  const command = ["nginx", "-p", dir, "-c", main];
  const front = startProcess("nginx", [...command.slice(1), "-g", "daemon off;"]);
  const stop = async () => {
    // TERM stops nginx at once. QUIT would wait for streams that a failed test has left open.
    await front.stop("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await untilReady(front, () => accepts(port));
  } catch (error) {
    const reason = read(join(dir, "error.log"));
    await stop();
    throw new Error(reason, { cause: error });
  }
  const accessLog = () =>
    read(join(dir, "access.log"))
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    tlsPort,
    ca: readFileSync(certFile, "utf8"),
    file,
    command,
    accessLog,
    errorLog: () => read(join(dir, "error.log")),
    stop,
  };
}

/** Runs `nginx -t` on the shipped file. @returns its output; @throws the output as an Error if it refuses the file. */
export async function checkNginxFile(edit?: NginxOptions["edit"]): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-nginx-"));
  try {
    const { certFile, keyFile } = makeCertificate(dir);
    const file = join(dir, "tollgate.conf");
    const main = join(dir, "nginx.conf");
    const options: NginxOptions = { servers: ["127.0.0.1:8787"], ...(edit ? { edit } : {}) };
    writeFileSync(file, configured(options, { dir, certFile, keyFile }, await freePorts(2)));
    writeFileSync(main, mainFile(dir, file));
    return (await execute("nginx", ["-t", "-p", dir, "-c", main])).stderr;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export type { FrontProcess };

function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => resolve(true));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/**
 * A real Envoy with the shipped file, `deploy/envoy.yaml`. Addresses and certificate paths are filled in, and the
 * public listener is added a second time without TLS. It runs on free ports and is stopped by process id.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "yaml";
import { envoyProgram } from "./envoy-program.ts";
import { makeCertificate, startProcess, untilReady } from "./front-files.ts";
import { freePorts } from "./ports.ts";

export const ENVOY_FILE = fileURLToPath(new URL("../../deploy/envoy.yaml", import.meta.url));
const execute = promisify(execFile);

interface SocketAddress {
  socket_address: { address: string; port_value: number; ipv4_compat?: boolean };
}
type EndpointAddress = SocketAddress | { pipe: { path: string } };

/** The parts of the file into which a test writes. All others stay as they are. */
interface EnvoyConfig {
  admin: { address: SocketAddress };
  static_resources: {
    listeners: {
      name: string;
      address: SocketAddress;
      filter_chains: {
        transport_socket?: {
          typed_config: {
            common_tls_context: {
              tls_certificates: { certificate_chain: { filename: string }; private_key: { filename: string } }[];
            };
          };
        };
        filters: unknown[];
      }[];
    }[];
    clusters: {
      load_assignment: {
        endpoints: {
          lb_endpoints: {
            endpoint: { address: EndpointAddress; health_check_config: { address: SocketAddress } };
          }[];
        }[];
      };
    }[];
  };
}

export interface EnvoyEndpoint {
  /** The port of the gateway, or the path of its unix socket. */
  readonly listen: number | string;
  readonly adminPort: number;
}

export interface EnvoyOptions {
  readonly endpoints: readonly EnvoyEndpoint[];
  /** Changes the file again, for a test that shows what a part of it does. */
  readonly edit?: (config: EnvoyConfig) => void;
}

export interface Envoy {
  readonly url: string;
  readonly port: number;
  readonly tlsUrl: string;
  readonly tlsPort: number;
  readonly ca: string;
  /** Envoy's own admin address. */
  readonly adminUrl: string;
  /** The URL that a load balancer in front of it requests. */
  readonly healthUrl: string;
  output(): string;
  stop(): Promise<void>;
}

const local = (port: number): SocketAddress => ({ socket_address: { address: "127.0.0.1", port_value: port } });

/** Starts Envoy, and resolves when it accepts requests and has checked the health of each endpoint. */
export async function startEnvoy(options: EnvoyOptions): Promise<Envoy> {
  const program = await envoyProgram();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-envoy-"));
  const { certFile, keyFile } = makeCertificate(dir);
  const ports = await freePorts(4);
  const [port, tlsPort, adminPort, healthPort] = ports as [number, number, number, number];
  const config = parse(readFileSync(ENVOY_FILE, "utf8")) as EnvoyConfig;
  config.admin.address = local(adminPort);
  putListeners(config, { port, tlsPort, healthPort, certFile, keyFile });
  putEndpoints(config, options.endpoints);
  options.edit?.(config);
  const file = join(dir, "envoy.json");
  writeFileSync(file, JSON.stringify(config));
  const small = ["--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"];
  const front = startProcess(program, ["-c", file, ...small]);
  const stop = async () => {
    await front.stop("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  };
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  try {
    await untilReady(front, () => isReady(adminUrl, options.endpoints.length));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    tlsPort,
    ca: readFileSync(certFile, "utf8"),
    adminUrl,
    healthUrl: `http://127.0.0.1:${healthPort}`,
    output: front.output,
    stop,
  };
}

/** `--mode validate` on the shipped text. Only the certificates, which it opens, are filled in. */
export async function checkEnvoyFile(edit: (text: string) => string = (text) => text): Promise<string> {
  const program = await envoyProgram();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-envoy-"));
  try {
    const { certFile, keyFile } = makeCertificate(dir);
    const text = readFileSync(ENVOY_FILE, "utf8")
      .replace("/etc/envoy/tollgate.crt", certFile)
      .replace("/etc/envoy/tollgate.key", keyFile);
    const file = join(dir, "envoy.yaml");
    writeFileSync(file, edit(text));
    const { stdout, stderr } = await execute(program, ["--mode", "validate", "--log-level", "warning", "-c", file]);
    return stdout + stderr;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface ListenerPlaces {
  readonly port: number;
  readonly tlsPort: number;
  readonly healthPort: number;
  readonly certFile: string;
  readonly keyFile: string;
}

function putListeners(config: EnvoyConfig, places: ListenerPlaces): void {
  const { listeners } = config.static_resources;
  const [shipped, health] = listeners;
  const [chain] = shipped?.filter_chains ?? [];
  const [certificate] = chain?.transport_socket?.typed_config.common_tls_context.tls_certificates ?? [];
  if (!shipped || !chain || !certificate || health?.name !== "health") {
    throw new Error("deploy/envoy.yaml no longer has its two listeners");
  }
  const { transport_socket: _, ...withoutTls } = chain;
  listeners.push({ ...shipped, name: "plain", address: local(places.port), filter_chains: [withoutTls] });
  shipped.address = local(places.tlsPort);
  health.address = local(places.healthPort);
  certificate.certificate_chain.filename = places.certFile;
  certificate.private_key.filename = places.keyFile;
}

function putEndpoints(config: EnvoyConfig, endpoints: readonly EnvoyEndpoint[]): void {
  const [cluster] = config.static_resources.clusters;
  const [group] = cluster?.load_assignment.endpoints ?? [];
  if (!group) throw new Error("deploy/envoy.yaml no longer has endpoints");
  group.lb_endpoints = endpoints.map(({ listen, adminPort }) => ({
    endpoint: {
      address: typeof listen === "number" ? local(listen) : { pipe: { path: listen } },
      health_check_config: { address: local(adminPort) },
    },
  }));
}

interface HostStatus {
  readonly health_status: { readonly failed_active_health_check?: boolean; readonly eds_health_status?: string };
}

/** The healthy hosts of the cluster, as Envoy reports them. */
export async function healthyHosts(adminUrl: string): Promise<number> {
  const reply = await fetch(`${adminUrl}/clusters?format=json`);
  const { cluster_statuses } = (await reply.json()) as { cluster_statuses: { host_statuses?: HostStatus[] }[] };
  const hosts = cluster_statuses.flatMap((cluster) => cluster.host_statuses ?? []);
  return hosts.filter((host) => !host.health_status.failed_active_health_check).length;
}

async function isReady(adminUrl: string, endpoints: number): Promise<boolean> {
  const reply = await fetch(`${adminUrl}/ready`);
  await reply.arrayBuffer();
  return reply.ok && (await healthyHosts(adminUrl)) === endpoints;
}

/** The schema of a `tls` section: how a server is verified, and our client certificate. */

import { optional, section, text } from "./words.ts";

const pemFile = (description: string) => text({ description, pattern: ".+", rule: "the path of a file" });

/** @param address the configuration key that holds the server's address. */
export const tls = (address: string) =>
  section(
    {
      description:
        "How the server is verified, and the client certificate of this gateway. The files are checked for changes once a second.",
    },
    {
      ca_file: optional(
        pemFile(
          "PEM file of the certificate authorities to trust. No others are trusted then. Default: those that Node.js knows.",
        ),
      ),
      cert_file: optional(
        pemFile("PEM file of the client certificate, for a server that asks for one. Needs key_file."),
      ),
      key_file: optional(pemFile("PEM file of the private key of the client certificate.")),
      server_name: optional(
        text({
          description: `The name that the server's certificate must have. Default: the host of ${address}.`,
          pattern: "[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?",
          rule: "a host name",
        }),
      ),
    },
  );

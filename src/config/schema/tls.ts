/** The schema of a `tls` section: who a server must be, and who we are to it. */

import { optional, section, text } from "./words.ts";

const pemFile = (description: string) => text({ description, pattern: ".+", rule: "the path of a file" });

/** @param address the key that says where the server is. */
export const tls = (address: string) =>
  section(
    { description: "How it is recognised, and how we are. The files are looked at once a second." },
    {
      ca_file: optional(pemFile("PEM file of the only certificate authorities that it may come from.")),
      cert_file: optional(pemFile("PEM file of our certificate, for a server that asks for one; with key_file.")),
      key_file: optional(pemFile("PEM file of the certificate's private key.")),
      server_name: optional(
        text({
          description: `The name that its certificate must carry, where that is not the host of ${address}.`,
          pattern: "[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?",
          rule: "a host name",
        }),
      ),
    },
  );

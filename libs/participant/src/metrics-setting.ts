import * as z from "zod";

const loopback = "127.0.0.1";

/** `<port>` on loopback, `<host>:<port>` or `[<IPv6>]:<port>`; port 0 takes a free one, which the log names. */
export const MetricsSetting = z
  .string()
  .regex(/^(?:(?:[\w.-]+|\[[\da-fA-F:]+\]):)?\d{1,5}$/, {
    error: "expected a port, or host:port such as 127.0.0.1:9464; port 0 takes a free one",
  })
  .transform((text) => {
    const at = text.lastIndexOf(":");
    const host = at === -1 ? loopback : text.slice(0, at).replace(/^\[(.*)\]$/, "$1");
    return { host, port: Number(text.slice(at + 1)) };
  })
  .refine(({ port }) => port <= 65_535, { error: "a port is at most 65535" });

/** One of several writer processes of the append benchmark: tells its parent what it measured. */
import { connectTo, openLog } from "@holdpoint/jetstream";
import { writerCell } from "./append.ts";

const [instance = "p0", sessions = "1"] = process.argv.slice(2);
const url = process.env["BENCH_URL"] ?? "";
const user = process.env["BENCH_USER"] ?? "";
const password = process.env["BENCH_PASSWORD"] ?? "";
const run = process.env["BENCH_RUN"] ?? "";
const connection = await connectTo({ url, user, password, name: `bench.${instance}` });
process.send?.(await writerCell({ run, log: openLog(connection, run) }, Number(sessions), instance));
await connection.close();
process.disconnect();
